package engine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/internal/faults"
)

const inputs = "engine-messages"

// claiming returns a world whose messages may leave their inputs in blobs, and one of its processes.
func claiming(t *testing.T) (*world, *enginetest.Process) {
	t.Helper()
	w := newWorld(t)
	w.claims = engine.NewClaims(w.Blobs, "")
	p := w.Restart(nil)
	if err := p.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w, p
}

// pack makes a message with an input that is too large for it.
func (w *world) pack(t *testing.T, correlationID string) []byte {
	t.Helper()
	input := json.RawMessage(`{` + strings.Repeat(`"degrees":1,`, engine.MaxMessage/10) + `"degrees":90}`)
	body, err := w.claims.Pack(t.Context(), engine.Message{CorrelationID: correlationID, Engine: "turntable", InstanceID: "i", Input: input})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// left counts the inputs in blobs.
func (w *world) left(t *testing.T) (n int) {
	t.Helper()
	for _, err := range blobs.All(t.Context(), w.Blobs, inputs, "") {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// sweep deletes unreferenced blobs that are a day old.
func sweep(t *testing.T, p *enginetest.Process) (removed int) {
	t.Helper()
	removed, next, err := p.SweepClaims(t.Context(), time.Now().Add(-day), "")
	if err != nil || next != "" {
		t.Fatalf("%q, %v", next, err)
	}
	return removed
}

const day = 24 * time.Hour

// An input in a blob is kept for as long as a message, an orchestration or a dead letter can need it.
func TestInputsStayForAsLongAsTheyAreNeeded(t *testing.T) {
	t.Parallel()
	send := func(queue string) func(*testing.T, *world, *enginetest.Process, []byte) {
		return func(t *testing.T, w *world, _ *enginetest.Process, body []byte) {
			t.Helper()
			w.Send(queue, string(body))
		}
	}
	deadLetter := func(t *testing.T, w *world, p *enginetest.Process, body []byte) {
		t.Helper()
		d := engine.Delivery{Queue: testQueue, ID: "m1", Body: body, DequeueCount: 5, InsertedAt: time.Now()}
		if err := p.Handle(t.Context(), d); err != nil || len(w.DeadLetters("turntable")) != 1 {
			t.Fatal(err)
		}
	}
	take := func(queue string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) { t.Helper(); w.Take(queue) }
	}
	for name, tt := range map[string]struct {
		use   func(t *testing.T, w *world, p *enginetest.Process, body []byte)
		leave func(t *testing.T, w *world)
		wait  time.Duration // until it is unreferenced
	}{
		"a message":          {use: send(testQueue), leave: take(testQueue)},
		"a poisoned message": {use: send(testQueue + engine.PoisonSuffix), leave: take(testQueue + engine.PoisonSuffix)},
		"an orchestration": {
			use: func(t *testing.T, w *world, p *enginetest.Process, body []byte) {
				t.Helper()
				d := engine.Delivery{Queue: testQueue, ID: "m1", Body: body, DequeueCount: 1, InsertedAt: time.Now()}
				if err := p.Handle(t.Context(), d); err != nil || p.Count(engine.Parked) != 1 {
					t.Fatal(err)
				}
			},
			leave: func(t *testing.T, w *world) {
				t.Helper()
				if err := w.Runtime().Terminate(t.Context(), "turntable-c/1", "enough"); err != nil {
					t.Fatal(err)
				}
				w.Restart(nil).Run()
			},
			wait: 2 * day, // a dead letter of a failed run would exist by now
		},
		"a dead letter": {use: deadLetter, leave: func(t *testing.T, w *world) {
			t.Helper()
			letters := engine.NewDeadLetters(w.Tables, "")
			d := w.DeadLetters("turntable")[0]
			r, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: letters, Queues: w.Queues})
			if err == nil {
				_, err = r.Retry(t.Context(), "turntable", d.RowKey, "somebody")
			}
			if err != nil {
				t.Fatal(err)
			}
			take(testQueue)(t, w)
			if n := sweep(t, w.Restart(nil)); n != 0 {
				t.Errorf("the input of a dead letter that was sent again went at once")
			}
			time.Sleep(91 * day)
			if n, more, err := letters.Retention(t.Context(), engine.Retention{Engines: []string{"turntable"}}, time.Now(), 10); n != 1 || more || err != nil {
				t.Fatal(n, more, err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, _ := claiming(t)
				w.waits = true
				p, body := w.Restart(nil), w.pack(t, "c/1")
				tt.use(t, w, p, body)
				for range 3 {
					if n := sweep(t, p); n != 0 || w.left(t) != 1 {
						t.Fatalf("%d inputs went that are needed", n)
					}
					time.Sleep(200 * day)
				}
				tt.leave(t, w)
				time.Sleep(tt.wait)
				if n := sweep(t, p); n != 1 || w.left(t) != 0 {
					t.Errorf("%d inputs went that nobody needs", n)
				}
			})
		})
	}
}

// Young inputs are kept, and so are inputs of unknown engines. A resent input is young again.
func TestInputsThatAreLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := claiming(t)
		for _, name := range []string{"other/c1/00", "turntable/c1", "turntable/c1/0/0", "turntable/=zz/00", "turntable/" + strings.Repeat("x", 400) + "/00"} {
			if err := w.Blobs.Put(t.Context(), inputs, name, nil); err != nil {
				t.Fatal(err)
			}
		}
		kept := w.left(t)
		w.pack(t, "again")
		w.pack(t, "gone")
		time.Sleep(2 * day)
		w.pack(t, "young")
		w.pack(t, "again")
		if n := sweep(t, p); n != 1 || w.left(t) != kept+2 {
			t.Errorf("%d inputs went, %d are left", n, w.left(t))
		}
		w.claims = nil
		if sweep(t, w.Restart(nil)) != 0 {
			t.Error("a pipeline without claims deletes some")
		}
	})
}

// A sweep that cannot read keeps everything, and the next sweep continues.
func TestInputsWhileStorageIsAway(t *testing.T) {
	t.Parallel()
	refused := 0
	for at := 1; refused == at-1; at++ {
		synctest.Test(t, func(t *testing.T) {
			w, p := claiming(t)
			w.pack(t, "c1")
			time.Sleep(2 * day)
			dying := w.Restart(&faults.Plan{At: at, Fault: faults.CrashBefore})
			_, _, err := dying.SweepClaims(t.Context(), time.Now().Add(-day), "")
			if err == nil {
				return // it makes fewer calls
			}
			if refused++; w.left(t) != 1 {
				t.Errorf("call %d fails, and the input is gone", at)
			}
			if sweep(t, p) != 1 {
				t.Error("the next deletes nothing")
			}
		})
	}
	if refused < 4 {
		t.Errorf("a sweep makes only %d calls", refused)
	}
}
