package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// processScenarios are those of processes, their clocks, and their scrapes.
func processScenarios() []scenario {
	return []scenario{
		{alert: "RoundhouseTargetAbsent", process: killed},
		{alert: "RoundhouseNoCollectorLeader", run: func(w *world) {
			w.well(20 * time.Minute)
			w.storage.broken(func(c faults.Call) error {
				if c.Target == hostlock.DefaultTable {
					return tables.ErrDenied
				}
				return nil
			})
			w.broken(30 * time.Minute)
			w.storage.broken(nil)
			w.mended(20 * time.Minute)
		}},
		{alert: "RoundhouseCollectorFailures", run: func(w *world) {
			w.well(20 * time.Minute)
			w.storage.broken(func(c faults.Call) error {
				if c.Operation == "Length" {
					return queues.ErrDenied
				}
				return nil
			})
			w.broken(30 * time.Minute)
			w.storage.broken(nil)
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhouseClockSkew", run: func(w *world) {
			w.well(20 * time.Minute)
			w.storage.off(-30 * time.Second)
			w.broken(20 * time.Minute)
			w.storage.off(0)
			w.mended(20 * time.Minute)
		}},
		{alert: "RoundhouseVersionMix", run: func(w *world) {
			w.meanwhile = func() { w.host.Send("work-queue", "{}") }
			w.well(20 * time.Minute)
			older, release := w.older()
			w.broken(150 * time.Minute)
			release()
			if err := older.Leave(w.t.Context()); err != nil {
				w.t.Error(err)
			}
			w.mended(20 * time.Minute)
		}},
		{name: "an update whose older processes are killed", run: func(w *world) {
			w.meanwhile = func() { w.host.Send("work-queue", "{}") }
			older, release := w.older()
			w.spend(5 * time.Minute)
			release()
			w.spend(3 * time.Minute) // it has no work in flight, so no process takes it over
			older.Close()
			w.well(20 * time.Minute)
			w.broken(60 * time.Minute)
			w.mended(60 * time.Minute)
		}},
		{name: "storage that is away", alert: "RoundhouseNoCollectorLeader", also: []string{"RoundhouseCollectorFailures"}, run: func(w *world) {
			w.host.Send("work-queue", `{"correlationId":"c1","input":{"do":"wait"}}`)
			w.publish("c2", "done")
			w.well(20 * time.Minute)
			w.storage.broken(func(faults.Call) error { return tables.ErrOutcomeUnknown })
			w.deaf(true) // the host misses it, too
			w.broken(40 * time.Minute)
			w.storage.broken(nil)
			w.deaf(false)
			w.mended(100 * time.Minute)
		}},
		{name: "processes that come and go", run: func(w *world) {
			w.meanwhile = func() {
				w.host.Send("work-queue", "{}")
				w.publish(fmt.Sprint("c", w.minute()), "done")
			}
			w.well(30 * time.Minute)
			for i := range 6 {
				w.replace(fmt.Sprint("b", i))
				w.spend(10 * time.Minute)
			}
			w.broken(10 * time.Minute)
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhouseNodeFenced", run: func(w *world) {
			other := w.second()
			w.well(20 * time.Minute)
			w.host.Send("work-queue", "{}")
			w.host.Deliver()
			w.storage.broken(func(faults.Call) error { return tables.ErrOutcomeUnknown }) // suspended
			time.Sleep(20 * time.Second)
			other.Deliver()
			w.storage.broken(nil)
			w.broken(30 * time.Minute)
			w.mended(60 * time.Minute)
		}},
	}
}

// second is another process of the app.
func (w *world) second() *handlertest.Host {
	w.t.Helper()
	h := handlertest.NewWith(w.t, handler.App{Engines: (&app{}).engines}, w.settings, func(c *handler.Config) {
		c.Dial, c.Tables, c.Queues, c.Blobs = w.network.Dial, w.host.Tables, w.host.Queues, w.host.Blobs
	})
	h.Tables, h.Queues, h.Blobs = w.host.Tables, w.host.Queues, w.host.Blobs
	return h
}

// older is a process of an older version, which works until its release.
func (w *world) older() (n *nodes.Node, release func()) {
	w.t.Helper()
	n, err := nodes.New(nodes.Config{Tables: w.host.Tables, Queues: w.host.Queues, Queue: orchestrator.DefaultScheduleQueue, Name: "older", Version: "older",
		TakeOver: func(_ context.Context, _ nodes.Lost, begun func(int)) error { begun(0); return nil }})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(n.Close)
	release = n.Hold("work-older")
	if err := n.Confirm(w.t.Context(), n.Name()); err != nil {
		w.t.Fatal(err)
	}
	return n, release
}
