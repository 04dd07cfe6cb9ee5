package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
)

// retrier returns the retrier of a process whose storage calls pass through a plan.
func (w *world) retrier(t *testing.T, plan *enginetest.Plan, starts map[string]engine.RetryFunc) *engine.Retrier {
	t.Helper()
	if plan == nil {
		plan = &enginetest.Plan{}
	}
	r, err := engine.NewRetrier(engine.RetrierConfig{
		DeadLetters: engine.NewDeadLetters(faults.Tables(w.Tables, plan.Intercept), ""), Queues: faults.Queues(w.Queues, plan.Intercept), Starts: starts,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// broken returns a world with one dead letter.
func broken(t *testing.T) (*world, engine.DeadLetter) {
	t.Helper()
	w := newWorld(t)
	w.turn = func(context.Context) error { return orchestrator.Permanent(errors.New("jammed")) }
	w.Send(testQueue, good)
	w.Restart(nil).Run()
	dead := w.DeadLetters("turntable")
	if len(dead) != 1 {
		t.Fatalf("%d dead letters", len(dead))
	}
	return w, dead[0]
}

// With any fault at any call of a retry, a repeat returns the same result, and all copies of the message in the queue
// have one retry id. The work is done once, or is one dead letter that names its predecessor. After an edited retry
// another edit is refused, and the row keeps the original and the sent bytes.
func TestRetryAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{"": good, "edited, ": edited} {
		for end, again := range map[string]error{"succeeds": nil, "fails again": orchestrator.Permanent(errors.New("jammed"))} {
			t.Run(name+end, func(t *testing.T) {
				t.Parallel()
				enginetest.FailEverywhere(t, nil, func(t *testing.T, plan *enginetest.Plan) {
					w, letter := broken(t)
					w.turn = func(context.Context) error { return again }
					w.retryTwice(t, plan, letter, sent)
					w.checkRetried(t, letter, sent, again)
				})
			})
		}
	}
}

// retryTwice retries a dead letter, with faults and then without, and checks the queue.
func (w *world) retryTwice(t *testing.T, plan *enginetest.Plan, letter engine.DeadLetter, sent string) {
	t.Helper()
	notes := "Retried"
	retry := func(plan *enginetest.Plan, by string) (engine.DeadLetter, error) {
		return w.retrier(t, plan, nil).Retry(t.Context(), letter.Engine, letter.RowKey, by)
	}
	if sent != good {
		notes = "Retried with an edited message"
		retry = func(plan *enginetest.Plan, by string) (engine.DeadLetter, error) {
			edit := engine.Edit{Message: []byte(sent), IfMatch: letter.ETag}
			return w.editor(t, plan).RetryEdited(t.Context(), letter.Engine, letter.RowKey, by, edit)
		}
	}
	first, err := retry(plan, "me")
	plan.Wait()
	second, err2 := retry(&enginetest.Plan{}, "you")
	if err2 != nil || err == nil && (first.RetryMessageID != second.RetryMessageID || first.RetryID != second.RetryID) {
		t.Fatalf("%+v, %v; repeated: %+v, %v", first, err, second, err2)
	}
	if sent != good {
		other := engine.Edit{Message: []byte(another)}
		if _, err := w.editor(t, nil).RetryEdited(t.Context(), letter.Engine, letter.RowKey, "you", other); !errors.Is(err, engine.ErrOtherMessage) {
			t.Errorf("another edit: %v", err)
		}
		if third, err := w.retrier(t, nil, nil).Retry(t.Context(), letter.Engine, letter.RowKey, "you"); err != nil || third.RetryMessageID != second.RetryMessageID {
			t.Errorf("a plain retry afterwards: %+v, %v", third, err)
		}
	}
	parent, err := engine.NewDeadLetters(w.Tables, "").Get(t.Context(), letter.Engine, letter.RowKey)
	if err != nil || parent.Status != engine.StatusResolved || parent.ResolutionNotes != notes || parent.RetryMessageID == "" ||
		parent.ResolvedAtUtc.IsZero() || parent.ResolvedBy != parent.RetriedBy || string(parent.OriginalMessage) != good ||
		sent != good && string(parent.SentMessage) != sent {
		t.Errorf("%+v, %v", parent, err)
	}
	w.checkCopies(t, second, sent)
}

// checkRetried runs the message of a retry, and checks its end.
func (w *world) checkRetried(t *testing.T, letter engine.DeadLetter, sent string, again error) {
	t.Helper()
	before := w.turns.Load()
	w.Restart(nil).Run()
	dead := w.DeadLetters("turntable")
	if n := w.turns.Load() - before; n < 1 || again == nil && n > 1 || sent != good && w.degrees.Load() != 45 { // a second copy retries failed work
		t.Errorf("it ran %d times, by %d degrees", n, w.degrees.Load())
	}
	if again == nil {
		if len(dead) != 1 || len(w.History("turntable", "c1")) != 3 {
			t.Errorf("%d dead letters, history %v", len(dead), w.History("turntable", "c1"))
		}
		w.checkSuperseded(t, "c1")
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
		!child.FirstFailureAtUtc.Equal(letter.FirstFailureAtUtc) || string(child.OriginalMessage) != sent {
		t.Errorf("the second dead letter: %+v", child)
	}
}

// checkCopies checks that every message in the queue has the body, under one retry id.
func (w *world) checkCopies(t *testing.T, letter engine.DeadLetter, sent string) {
	t.Helper()
	messages, err := w.Queues.Receive(t.Context(), testQueue, 32, time.Second)
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
		if err := json.Unmarshal([]byte(text), &j); err != nil || body != sent || j.Retry.ID != letter.RetryID || j.MessageID != letter.MessageID {
			t.Errorf("message %q, %v", line, err)
		}
	}
	time.Sleep(2 * time.Second) // virtual: they are visible again
}

func TestRetryIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, letter := broken(t)
		letters := engine.NewDeadLetters(w.Tables, "")
		r := w.retrier(t, nil, nil)
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

// An engine without a queue is started, with the retry id that makes a repeat the same start.
func TestRetryByStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, letter := broken(t)
		letter.Engine, letter.OriginalQueue = "update-publisher", "N/A"
		if _, err := engine.NewDeadLetters(w.Tables, "").Add(t.Context(), letter); err != nil {
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
		r := w.retrier(t, nil, map[string]engine.RetryFunc{"update-publisher": start})
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

// A retried run that ends by a signal records its retry, too.
func TestRetriedRunEndsBySignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.parts, w.dry = spreadAbove+3, orchestrator.Permanent(errors.New("no oil"))
		w.Send(testQueue, good)
		w.Restart(nil).Run()
		dead := w.DeadLetters("turntable")
		if len(dead) != 1 {
			t.Fatalf("%d dead letters", len(dead))
		}
		if _, err := w.retrier(t, nil, nil).Retry(t.Context(), "turntable", dead[0].RowKey, "me"); err != nil {
			t.Fatal(err)
		}
		w.Restart(nil).Run()
		children := 0
		for _, l := range w.DeadLetters("turntable") {
			if l.ParentRowKey == dead[0].RowKey && l.Status == engine.StatusPending {
				children++
			}
		}
		if children != 1 {
			t.Errorf("%d dead letters name their predecessor, there are %+v", children, w.DeadLetters("turntable"))
		}
	})
}
