package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// A singleton whose orchestration is damaged: its messages become dead letters that say so, and so do events for it; one
// dead letter tells of the damage itself. After a forced purge, the next message runs, and so does what is retried.
func TestDamagedSingleton(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]string{"a round is missing": "r-00000001-00000001", "its status is missing": "status"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHall(t)
				h.waits, h.least = true, 60
				p := h.process(t, nil)
				h.send(t, "one")
				h.attend(t, p, 5*time.Minute) // until it waits for the event
				const id = "door-i1"
				lost := tables.Delete(tables.Key{Partition: id, Row: row}, "")
				if err := h.tables.Apply(t.Context(), "orchestrations", lost); err != nil {
					t.Fatal(err)
				}
				if err := p.runtime.Raise(t.Context(), id, "open", 1, "event"); err != nil {
					t.Fatal(err)
				}
				h.attend(t, p, 2*time.Hour) // until the lock of the damaged run has expired
				h.send(t, "two")
				h.attend(t, p, 10*time.Minute)
				dead := h.dead(t, "door")
				if len(dead) != 1 || dead[0].DetectedReason != engine.ReasonInconsistent || !strings.Contains(dead[0].ErrorMessage, "stored rounds are damaged") {
					t.Fatalf("dead letters of the engine: %+v", dead)
				}
				told, events := 0, 0
				for _, l := range h.dead(t, engine.SignalEngine) {
					// Of a signal whose run can be told, it is that of the run.
					if l.CorrelationID != id && (l.CorrelationID != "one" || strings.Contains(l.ErrorMessage, "purge it by force")) || l.DetectedReason != engine.ReasonInconsistent {
						t.Errorf("%+v", l)
					}
					if strings.Contains(l.ErrorMessage, "purge it by force") {
						told++
					} else {
						events++
					}
				}
				if told != 1 || events < 1 || events > 3 { // timers' messages are among them
					t.Errorf("%d dead letters tell of the damage, %d are messages for it", told, events)
				}

				if err := p.runtime.ForcePurge(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				h.waits = false
				p = h.process(t, nil)
				h.send(t, "three")
				h.attend(t, p, 10*time.Minute)
				retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: engine.NewDeadLetters(h.tables, ""), Queues: h.queues})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := retrier.Retry(t.Context(), dead[0].Engine, dead[0].RowKey, "somebody"); err != nil {
					t.Fatal(err)
				}
				h.attend(t, p, 10*time.Minute)
				if i, done := h.document(t); fmt.Sprint(done) != "[door-i1/three door-i1/two]" || i.Lock.JobID != "" {
					t.Errorf("%v %+v", done, i.Lock)
				}
			})
		})
	}
}

// What has no id is told of, too, and can be told apart.
func TestDamageWithoutAnID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		p := h.process(t, nil)
		for range 2 {
			for _, partition := range []string{"a=zz", "b=zz"} {
				d := orchestrator.Damage{Partition: partition, Reason: "no name", Since: time.Unix(1000, 0)}
				if err := p.pipeline.Damaged(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
		}
		dead := h.dead(t, engine.SignalEngine)
		if len(dead) != 2 || !strings.Contains(dead[0].ErrorMessage, "delete its rows") {
			t.Errorf("%+v", dead)
		}
	})
}

// attend is a host for some time: it delivers what is visible, and hands what failed eight times to the poison queue's
// function.
func (h *hall) attend(t *testing.T, p hallProcess, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(visibility / 3) {
		for _, queue := range []string{doorQueue, signalQueue, scheduleQueue} {
			messages, err := h.queues.Receive(t.Context(), queue, 32, visibility)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range messages {
				h.deliver(t, p, queue, m)
			}
		}
	}
}

func (h *hall) deliver(t *testing.T, p hallProcess, queue string, m queues.Message) {
	t.Helper()
	handle, poison := p.pipeline.HandleSignal, p.pipeline.HandleSignalPoison
	if queue == doorQueue {
		handle, poison = p.pipeline.Handle, p.pipeline.HandlePoison
	}
	d := engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}
	err := handle(t.Context(), d)
	if err != nil && m.DequeueCount >= 8 {
		d.Queue, d.DequeueCount = queue+engine.PoisonSuffix, 1
		err = poison(t.Context(), d)
	}
	if err != nil {
		return
	}
	if err := h.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt); err != nil {
		t.Error(err)
	}
}

// dead are the dead letters of an engine.
func (h *hall) dead(t *testing.T, name string) []engine.DeadLetter {
	t.Helper()
	page, err := engine.NewDeadLetters(h.tables, "").List(t.Context(), engine.DeadLetterFilter{Engines: []string{name}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var all []engine.DeadLetter
	for _, item := range page.DeadLetters {
		l, err := engine.NewDeadLetters(h.tables, "").Get(t.Context(), item.Engine, item.RowKey)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}
