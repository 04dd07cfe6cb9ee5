package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// A singleton whose orchestration is damaged: its messages become dead letters that name the damage, and so do events
// for it; one dead letter reports the damage itself. After a forced purge, the next message runs, and so do retries.
func TestDamagedSingleton(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]string{"a round is missing": "r-00000001-00000001", "its status is missing": "status"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHall(t)
				h.waits, h.least = true, 60
				p := h.Restart(nil)
				h.send("one")
				h.Pass(5 * time.Minute) // until it waits for the event
				const id = "door-i1"
				lost := tables.Delete(tables.Key{Partition: id, Row: row}, "")
				if err := h.Tables.Apply(t.Context(), "orchestrations", lost); err != nil {
					t.Fatal(err)
				}
				if err := p.Runtime.Raise(t.Context(), id, "open", 1, "event"); err != nil {
					t.Fatal(err)
				}
				h.Pass(2 * time.Hour) // until the lock of the damaged run has expired
				h.send("two")
				h.Pass(10 * time.Minute)
				dead := h.DeadLetters("door")
				if len(dead) != 1 || dead[0].DetectedReason != engine.ReasonInconsistent || !strings.Contains(dead[0].ErrorMessage, "stored rounds are damaged") {
					t.Fatalf("dead letters of the engine: %+v", dead)
				}
				told, events := 0, 0
				for _, l := range h.DeadLetters(engine.SignalEngine) {
					// A signal whose run is known has the run's correlation id.
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

				if err := p.Runtime.ForcePurge(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				h.waits = false
				h.Restart(nil)
				h.send("three")
				h.Pass(10 * time.Minute)
				retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: engine.NewDeadLetters(h.Tables, ""), Queues: h.Queues})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := retrier.Retry(t.Context(), dead[0].Engine, dead[0].RowKey, "somebody"); err != nil {
					t.Fatal(err)
				}
				h.Pass(10 * time.Minute)
				if i, done := h.document(t); fmt.Sprint(done) != "[door-i1/three door-i1/two]" || i.Lock.JobID != "" {
					t.Errorf("%v %+v", done, i.Lock)
				}
			})
		})
	}
}

// Damage without an id is reported, too, and is distinguishable.
func TestDamageWithoutAnID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		p := h.Restart(nil)
		for range 2 {
			for _, partition := range []string{"a=zz", "b=zz"} {
				d := orchestrator.Damage{Partition: partition, Reason: "no name", Since: time.Unix(1000, 0)}
				if err := p.Damaged(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
		}
		dead := h.DeadLetters(engine.SignalEngine)
		if len(dead) != 2 || !strings.Contains(dead[0].ErrorMessage, "delete its rows") {
			t.Errorf("%+v", dead)
		}
	})
}
