package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// retrier is one of a process whose storage calls pass through a plan.
func (w *world) retrier(t *testing.T, plan *faults.Plan, starts map[string]engine.RetryFunc) *engine.Retrier {
	t.Helper()
	r, err := engine.NewRetrier(engine.RetrierConfig{
		DeadLetters: engine.NewDeadLetters(faults.Tables(w.tables, plan.Intercept), ""), Queues: faults.Queues(w.queues, plan.Intercept), Starts: starts,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// broken has one message in the dead letters.
func broken(t *testing.T) (*world, engine.DeadLetter) {
	t.Helper()
	w := newWorld()
	w.turn = func(context.Context) error { return orchestrator.Permanent(errors.New("jammed")) }
	w.prepare(t)
	w.send(t, good)
	w.host(t, w.always(w.process(t, nil)))
	dead := w.deadLetters(t)
	if len(dead) != 1 {
		t.Fatalf("%d dead letters", len(dead))
	}
	return w, dead[0]
}

// Whatever happens at whichever call of a retry: who repeats it gets one answer, all copies of the message in the queue
// have one retry id, and the work is done once, or is one dead letter that names its predecessor.
func TestRetryAtEveryCall(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, plan *faults.Plan, again error) {
		w, letter := broken(t)
		w.turn = func(context.Context) error { return again }
		before := w.turns.Load()
		first, err := w.retrier(t, plan, nil).Retry(t.Context(), letter.Engine, letter.RowKey, "me")
		plan.Wait()
		second, err2 := w.retrier(t, &faults.Plan{}, nil).Retry(t.Context(), letter.Engine, letter.RowKey, "you")
		if err2 != nil || err == nil && (first.RetryMessageID != second.RetryMessageID || first.RetryID != second.RetryID) {
			t.Fatalf("%+v, %v; repeated: %+v, %v", first, err, second, err2)
		}
		parent, err := engine.NewDeadLetters(w.tables, "").Get(t.Context(), letter.Engine, letter.RowKey)
		if err != nil || parent.Status != engine.StatusResolved || parent.ResolutionNotes != "Retried" || parent.RetryMessageID == "" ||
			parent.ResolvedAtUtc.IsZero() || parent.ResolvedBy != parent.RetriedBy {
			t.Errorf("%+v, %v", parent, err)
		}
		w.checkCopies(t, second)
		w.host(t, w.always(w.process(t, nil)))
		dead := w.deadLetters(t)
		if again == nil {
			if n := w.turns.Load() - before; n != 1 || len(dead) != 1 || len(w.history(t, "c1")) != 3 {
				t.Errorf("it ran %d times, %d dead letters, history %v", n, len(dead), w.history(t, "c1"))
			}
			return
		}
		if len(dead) != 2 {
			t.Fatalf("%d dead letters", len(dead))
		}
		child := dead[0]
		if child.RowKey == letter.RowKey {
			child = dead[1]
		}
		if child.ParentRowKey != letter.RowKey || child.RetryCount != 1 || child.CorrelationID != "c1" || child.Status != engine.StatusPending ||
			!child.FirstFailureAtUtc.Equal(letter.FirstFailureAtUtc) {
			t.Errorf("the second dead letter: %+v", child)
		}
	}
	for name, again := range map[string]error{"succeeds": nil, "fails again": orchestrator.Permanent(errors.New("jammed"))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := &faults.Plan{}
			synctest.Test(t, func(t *testing.T) { run(t, count, again) })
			for at := range count.Calls() {
				for _, fault := range faults.Faults() {
					t.Run(fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: fault}, again) })
					})
				}
			}
		})
	}
}

// checkCopies: every message in the queue is the retried one, under its one retry id.
func (w *world) checkCopies(t *testing.T, letter engine.DeadLetter) {
	t.Helper()
	messages, err := w.queues.Receive(t.Context(), testQueue, 32, time.Second)
	if err != nil || len(messages) == 0 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	for _, m := range messages {
		line, body, _ := strings.Cut(string(queues.Decode(m.Text)), "\n")
		var j struct {
			MessageID string
			Retry     struct{ ID, Parent string }
		}
		_, text, _ := strings.Cut(line, " ")
		if err := json.Unmarshal([]byte(text), &j); err != nil || body != good || j.Retry.ID != letter.RetryID || j.MessageID != letter.MessageID {
			t.Errorf("message %q, %v", line, err)
		}
	}
	time.Sleep(2 * time.Second) // virtual: they are visible again
}

func TestRetryIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, letter := broken(t)
		letters := engine.NewDeadLetters(w.tables, "")
		r := w.retrier(t, &faults.Plan{}, nil)
		add := func(id, queue string, size int, status engine.DeadLetterStatus) string {
			l := letter
			l.MessageID, l.OriginalQueue, l.Status, l.OriginalMessage = id, queue, status, []byte(strings.Repeat("x", size))
			if _, err := letters.Add(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			return id + letter.RowKey[len(letter.MessageID):]
		}
		for row, want := range map[string]error{
			add("na", "N/A", 1, ""):                            engine.ErrNotRetryable,
			add("none", "", 1, ""):                             engine.ErrNotRetryable,
			add("big", testQueue, 48<<10, ""):                  engine.ErrNotRetryable,
			add("gone", "no-such-queue", 1, ""):                engine.ErrNotRetryable,
			add("done", testQueue, 1, engine.StatusResolved):   engine.ErrState,
			add("expired", testQueue, 1, engine.StatusExpired): engine.ErrState,
			"nothing" + letter.RowKey[len(letter.MessageID):]:  engine.ErrNotFound,
			"no row key": engine.ErrNotFound,
		} {
			if _, err := r.Retry(t.Context(), "turntable", row, "me"); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", row, err, want)
			}
		}
	})
}

// An engine without a queue is started, with the retry id to do it once.
func TestRetryByStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, letter := broken(t)
		letter.Engine, letter.OriginalQueue = "update-publisher", "N/A"
		if _, err := engine.NewDeadLetters(w.tables, "").Add(t.Context(), letter); err != nil {
			t.Fatal(err)
		}
		var ids []string
		failing := true
		start := func(_ context.Context, l engine.DeadLetter) (string, error) {
			ids = append(ids, l.RetryID)
			if failing {
				return "", errors.New("no line")
			}
			return "started-" + l.CorrelationID, nil
		}
		r := w.retrier(t, &faults.Plan{}, map[string]engine.RetryFunc{"update-publisher": start})
		if _, err := r.Retry(t.Context(), letter.Engine, letter.RowKey, "me"); err == nil {
			t.Error("no error")
		}
		failing = false
		got, err := r.Retry(t.Context(), letter.Engine, letter.RowKey, "me")
		if err != nil || got.RetryMessageID != "started-c1" || len(ids) != 2 || ids[0] != ids[1] || got.RetryID != ids[0] {
			t.Errorf("%+v, %v, retry ids %v", got, err, ids)
		}
	})
}

// A retried run whose end comes by a signal knows of its retry, too.
func TestRetriedRunEndsBySignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.parts, w.dry = spreadAbove+3, orchestrator.Permanent(errors.New("no oil"))
		w.prepare(t)
		w.send(t, good)
		w.host(t, w.always(w.process(t, nil)))
		dead := w.deadLetters(t)
		if len(dead) != 1 {
			t.Fatalf("%d dead letters", len(dead))
		}
		if _, err := w.retrier(t, &faults.Plan{}, nil).Retry(t.Context(), "turntable", dead[0].RowKey, "me"); err != nil {
			t.Fatal(err)
		}
		w.host(t, w.always(w.process(t, nil)))
		children := 0
		for _, l := range w.deadLetters(t) {
			if l.ParentRowKey == dead[0].RowKey && l.Status == engine.StatusPending {
				children++
			}
		}
		if children != 1 {
			t.Errorf("%d dead letters name their predecessor, there are %+v", children, w.deadLetters(t))
		}
	})
}
