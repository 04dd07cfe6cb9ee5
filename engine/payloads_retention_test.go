package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
)

// The blob of a message to an orchestration is kept while the message is in its queue, in the poison queue or a dead
// letter, even if the orchestration does not exist. Blobs of purged executions do not wait for that.
func TestPayloadsOfMessagesStay(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"an id": "turntable-c1", "an id that is no correlation id": strings.Repeat("x", 300)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, p := claiming(t)
				queue := w.Runtime().SignalQueue()
				wants := func(when string, want int) {
					t.Helper()
					time.Sleep(2 * day)
					if n, next, err := p.SweepPayloads(t.Context(), time.Now().Add(-day), ""); n != want || next != "" || err != nil {
						t.Errorf("%s: %d went, want %d, %q, %v", when, n, want, next, err)
					}
				}
				if err := w.Blobs.Put(t.Context(), "orchestrations", id+"/00000003/"+strings.Repeat("a", 64), nil); err != nil {
					t.Fatal(err)
				}
				if err := w.Runtime().Raise(t.Context(), id, "turned", strings.Repeat("degrees", queues.MaxBody), ""); err != nil {
					t.Fatal(err)
				}
				wants("in the queue", 1) // the other one
				m := w.Take(queue)
				w.Send(queue+engine.PoisonSuffix, string(m.Body))
				wants("in the poison queue", 0)
				w.Take(queue + engine.PoisonSuffix)
				d := engine.Delivery{Queue: queue + engine.PoisonSuffix, ID: "m1", Body: m.Body, DequeueCount: 1, InsertedAt: time.Now()}
				if err := p.HandleSignalPoison(t.Context(), d); err != nil || len(w.DeadLetters(engine.SignalEngine)) != 1 {
					t.Fatal(err)
				}
				wants("a dead letter", 0)
				letters := engine.NewDeadLetters(w.Tables, "")
				if _, err := letters.Decide(t.Context(), engine.SignalEngine, w.DeadLetters(engine.SignalEngine)[0].RowKey, engine.Decision{Status: engine.StatusExpired, By: "somebody", At: time.Now()}); err != nil {
					t.Fatal(err)
				}
				wants("an expired dead letter", 0)
				time.Sleep(91 * day)
				if n, _, err := letters.Retention(t.Context(), engine.Retention{Engines: []string{engine.SignalEngine}}, time.Now(), 10); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				wants("nothing", 1)
			})
		})
	}
}

// A sweep that cannot read keeps everything.
func TestPayloadsWhileStorageIsAway(t *testing.T) {
	t.Parallel()
	refused := 0
	for at := 1; refused == at-1; at++ {
		synctest.Test(t, func(t *testing.T) {
			w, p := claiming(t)
			if err := w.Blobs.Put(t.Context(), "orchestrations", "gone/"+strings.Repeat("a", 64), nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * day)
			_, _, err := w.Restart(&faults.Plan{At: at, Fault: faults.CrashBefore}).SweepPayloads(t.Context(), time.Now().Add(-day), "")
			if err == nil {
				return // it makes fewer calls
			}
			refused++
			if n, _, err := p.SweepPayloads(t.Context(), time.Now().Add(-day), ""); n != 1 || err != nil {
				t.Errorf("call %d fails: the next removes %d, %v", at, n, err)
			}
		})
	}
	if refused < 4 {
		t.Errorf("a sweep makes only %d calls", refused)
	}
}
