package update_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// hidden is how long a host that has died keeps its messages from others.
const hidden = 10 * time.Minute

// delivery receives a message, as a host does.
func (p *plant) delivery(t *testing.T, queue string) (engine.Delivery, queues.Message, bool) {
	t.Helper()
	messages, err := p.queues.Receive(t.Context(), queue, 1, hidden)
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) == 0 {
		return engine.Delivery{}, queues.Message{}, false
	}
	m := messages[0]
	return engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}, m, true
}

// goOn delivers signals and timers until nobody holds the lock, for less than the dead host's messages are hidden.
func (p *plant) goOn(t *testing.T, pipeline *engine.Pipeline) {
	t.Helper()
	for began := time.Now(); time.Since(began) < hidden/2 && p.state(t).Lock != ""; time.Sleep(time.Second) {
		for _, queue := range []string{"orchestration-signals", "orchestration-schedules"} {
			d, m, found := p.delivery(t, queue)
			if !found {
				continue
			}
			if err := pipeline.HandleSignal(t.Context(), d); err != nil {
				t.Error(err)
			}
			if err := p.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt); err != nil {
				t.Error(err)
			}
		}
	}
}

// watchLock sees to it that the lock is that of one job until it is free, and stays free.
func (p *plant) watchLock(t *testing.T, job string, freed *atomic.Bool) {
	i, err := p.registry.Get(t.Context(), instance)
	if err != nil {
		t.Error(err)
		return
	}
	if i.Lock.JobID == "" {
		freed.Store(true)
	} else if i.Lock.JobID != job || freed.Load() {
		t.Errorf("the lock is that of %q, not of %q, or was free in between", i.Lock.JobID, job)
	}
}

// A process dies with its host at any call while its update holds the lock of the instance. Whoever takes over goes on under that
// very lock, which is the update's and not the process's, and gives it up at the end. Nobody waits for the dead host's message.
func TestATakeoverGoesOnUnderTheLock(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, plan *faults.Plan) (held bool) {
		t.Helper()
		p := newPlant(t)
		p.send(t, "one", twoUp)
		dying, _ := p.node(t, "lost", plan)
		d, _, _ := p.delivery(t, update.Queue)
		began := time.Now()
		if err := dying.Handle(t.Context(), d); err == nil || !plan.Crashed() {
			return false
		}
		var freed atomic.Bool
		lock := p.state(t).Lock
		if lock == "" {
			return false
		}
		pipeline, rt := p.node(t, "taker", &faults.Plan{Refuse: func(faults.Call) bool { p.watchLock(t, lock, &freed); return false }})
		lost := orchestrator.Lost{Node: "lost", Orchestrations: []string{"update-" + instance}, Since: began}
		if err := rt.TakeOver(t.Context(), lost, func(int) {}); err != nil {
			t.Error(err)
		}
		p.goOn(t, pipeline)
		if s := p.state(t); s.Lock != "" || s.Pending || s.Db != "8" {
			t.Errorf("%v after the death: %+v", time.Since(began), s)
		}
		if rows := p.history(t, "one"); len(rows) == 0 || rows[len(rows)-1] != "component-update Succeeded Succeeded" {
			t.Errorf("history: %v", rows)
		}
		return true
	}
	count := &faults.Plan{}
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		p.send(t, "one", twoUp)
		pipeline, _ := p.node(t, "counts", count)
		d, _, _ := p.delivery(t, update.Queue)
		if err := pipeline.Handle(t.Context(), d); err != nil {
			t.Error(err)
		}
	})
	held := 0
	for at := range count.Calls() {
		for _, fault := range []faults.Fault{faults.CrashBefore, faults.CrashAfter} {
			t.Run(fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if run(t, &faults.Plan{At: at + 1, Fault: fault}) {
						held++
					}
				})
			})
		}
	}
	if held < 10 {
		t.Errorf("only %d processes died with the lock in their hands", held)
	}
}
