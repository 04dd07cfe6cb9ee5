package bulk

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const rotations = "hmac-rotation-queue"

func (w *world) deadLetters(t *testing.T, ts tables.Store, qs queues.Store) (*engine.DeadLetters, *engine.Retrier) {
	t.Helper()
	letters := engine.NewDeadLetters(ts, "")
	retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: letters, Queues: qs})
	testenv.Check(t, err)
	return letters, retrier
}

// bury adds dead letters of the engine hmac.
func (w *world) bury(t *testing.T, n int, change func(i int, l *engine.DeadLetter)) *engine.DeadLetters {
	t.Helper()
	letters, _ := w.deadLetters(t, w.tables, w.queues)
	testenv.Check(t, errors.Join(letters.CreateTable(t.Context()), w.queues.CreateQueue(t.Context(), rotations)))
	for i := range n {
		l := engine.DeadLetter{
			Engine: "hmac", MessageID: fmt.Sprintf("message-%d", i), InsertedAtUtc: time.Now(), OriginalQueue: rotations,
			OriginalMessage: fmt.Appendf(nil, `{"correlationId":"c%d"}`, i), ErrorMessage: "no", CorrelationID: fmt.Sprintf("c%d", i),
			LastFailureAtUtc: time.Now().Add(time.Duration(i) * time.Microsecond),
		}
		if change != nil {
			change(i, &l)
		}
		testenv.Done(t)(letters.Add(t.Context(), l))
	}
	<-time.After(time.Minute) // an operation means what was there before it
	return letters
}

// retries takes all messages out of the queue and gives, by message id, the retry ids under which each was sent.
func (w *world) retries(t *testing.T) map[string]map[string]int {
	t.Helper()
	ids := map[string]map[string]int{}
	for {
		batch, err := w.queues.Receive(t.Context(), rotations, 32, time.Hour)
		testenv.Check(t, err)
		if len(batch) == 0 {
			return ids
		}
		for _, m := range batch {
			line, _, _ := strings.Cut(string(queues.Decode(m.Text)), "\n")
			_, text, _ := strings.Cut(line, " ")
			var j struct {
				MessageID string
				Retry     struct{ ID string }
			}
			if err := json.Unmarshal([]byte(text), &j); err != nil || j.Retry.ID == "" {
				t.Fatalf("%q: %v", line, err)
			}
			if ids[j.MessageID] == nil {
				ids[j.MessageID] = map[string]int{}
			}
			ids[j.MessageID][j.Retry.ID]++
		}
	}
}

func (w *world) counts(t *testing.T) engine.DeadLetterCounts {
	t.Helper()
	letters, _ := w.deadLetters(t, w.tables, w.queues)
	counts, err := letters.Counts(t.Context(), []string{"hmac"})
	testenv.Check(t, err)
	return counts[0]
}

// 5,000 dead letters are retried by three processes at once, the first of which dies in the middle. A receiver sees each
// message under one retry id, and all of them are resolved.
func TestBulkRetryWithADeathInTheMiddle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const letters = 5_000
		w := newWorld(t, 0)
		w.bury(t, letters, nil)
		first := w.process(t, &faults.Plan{At: 12_000, Fault: faults.CrashAfter})
		op, err := first.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionRetry, Engine: "hmac", By: "me"}, "", "corr")
		testenv.Check(t, err)
		first.work(t, w)
		others := []*process{w.process(t, nil), w.process(t, nil)}
		between, err := others[0].operations.Get(t.Context(), op.ID)
		if done := between.Progress.Done; err != nil || !first.plan.Crashed() || between.Ended() || done == 0 || done >= letters {
			t.Errorf("in the middle: %+v, %v", between, err)
		}
		var wait sync.WaitGroup
		for _, p := range others {
			wait.Go(func() { p.work(t, w) })
		}
		wait.Wait()
		end, err := others[0].operations.Get(t.Context(), op.ID)
		if err != nil || end.Status != orchestrator.Completed || end.Progress.PassedOver != 0 || end.Progress.Done < letters-sliceSize || end.Progress.Done > letters {
			t.Errorf("at the end: %+v, %v", end, err)
		}
		sent := w.retries(t)
		for message, ids := range sent {
			if len(ids) != 1 {
				t.Errorf("%s was sent under %v", message, ids)
			}
		}
		if c := w.counts(t); len(sent) != letters || c.Pending != 0 || c.Resolved != letters {
			t.Errorf("%d messages sent, %+v", len(sent), c)
		}
	})
}

func TestBulkExpireByFilter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		began := time.Now()
		w.bury(t, 250, func(i int, l *engine.DeadLetter) {
			switch {
			case i%5 == 0:
				l.InstanceID = "i1"
			case i%5 == 1:
				l.Status = engine.StatusResolved
			}
		})
		p := w.process(t, nil)
		op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionExpire, InstanceID: "i1", To: began.Add(time.Second), By: "me"}, "", "corr")
		testenv.Check(t, err)
		p.work(t, w)
		end, err := p.operations.Get(t.Context(), op.ID)
		if c := w.counts(t); err != nil || end.Progress.Done != 50 || c.Expired != 50 || c.Resolved != 50 || c.Pending != 150 {
			t.Errorf("%+v, %v; %+v", end, err, c)
		}
	})
}

// At three a second, fifty take their time, and a cancellation does not wait for all of them.
func TestBulkRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.bury(t, 50, nil)
		p := w.process(t, nil)
		began := time.Now()
		op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionRetry, RatePerSecond: 3}, "", "corr")
		testenv.Check(t, err)
		var wait sync.WaitGroup
		for range 2 { // one drives it, and one is there for the cancellation
			wait.Go(func() { p.work(t, w) })
		}
		<-time.After(9 * time.Second)
		if c := w.counts(t); c.Resolved < 25 || c.Resolved > 28 {
			t.Errorf("after 9 s: %+v", c)
		}
		testenv.Done(t)(p.operations.Cancel(t.Context(), op.ID, "enough"))
		wait.Wait()
		end, err := p.operations.Get(t.Context(), op.ID)
		if c := w.counts(t); err != nil || end.Status != orchestrator.Canceled || c.Pending == 0 || end.EndedAt.Sub(began) > 25*time.Second {
			t.Errorf("%+v after %v, %v; %+v", end, end.EndedAt.Sub(began), err, c)
		}
	})
}

func TestBulkCanary(t *testing.T) {
	t.Parallel()
	for name, comesBack := range map[string]bool{"sings": false, "comes back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 0)
				letters := w.bury(t, 150, nil)
				p := w.process(t, nil)
				op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionRetry, Canary: 3, CanarySeconds: 30}, "", "corr")
				testenv.Check(t, err)
				var wait sync.WaitGroup
				wait.Go(func() { p.work(t, w) })
				<-time.After(20 * time.Second)
				if c := w.counts(t); c.Resolved != 3 {
					t.Errorf("before the canary is judged: %+v", c)
				}
				if comesBack {
					page, err := letters.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"hmac"}, Status: engine.StatusResolved})
					testenv.Check(t, err)
					l, err := letters.Get(t.Context(), "hmac", page.DeadLetters[0].RowKey)
					testenv.Check(t, err)
					child := engine.DeadLetter{Engine: "hmac", MessageID: l.MessageID, InsertedAtUtc: l.RetriedAtUtc, ParentRowKey: l.RowKey,
						OriginalQueue: rotations, ErrorMessage: "no", LastFailureAtUtc: time.Now(), CorrelationID: l.CorrelationID}
					testenv.Done(t)(letters.Add(t.Context(), child))
				}
				wait.Wait()
				end, err := p.operations.Get(t.Context(), op.ID)
				testenv.Check(t, err)
				want := Progress{Slices: 3, Done: 150}
				status := orchestrator.Completed
				if comesBack {
					want, status = Progress{Slices: 1, Done: 3, Returned: 1}, orchestrator.Failed
				}
				if end.Progress != want || end.Status != status {
					t.Errorf("%+v", end)
				}
			})
		})
	}
}

// An operation that is canceled while its canary is out leaves the rest alone, also when the canary sings.
func TestACanceledCanary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.bury(t, 150, nil)
		p := w.process(t, nil)
		op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: ActionRetry, Canary: 3, CanarySeconds: 30}, "", "corr")
		testenv.Check(t, err)
		var wait sync.WaitGroup
		wait.Go(func() { p.work(t, w) })
		<-time.After(20 * time.Second)
		testenv.Check(t, p.runtime.Cancel(t.Context(), op.ID, "enough"))
		wait.Wait()
		op, err = p.operations.Get(t.Context(), op.ID)
		if c := w.counts(t); err != nil || op.Status != orchestrator.Canceled || c.Resolved != 3 {
			t.Errorf("%+v, %v; %+v", op, err, c)
		}
	})
}

func TestBulkRefusesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.bury(t, 1, nil)
		p := w.process(t, nil)
		op, err := p.operations.Start(t.Context(), DeadLetterKind, Request{Action: "odd"}, "", "corr")
		testenv.Check(t, err)
		p.work(t, w)
		if op, err = p.operations.Get(t.Context(), op.ID); err != nil || op.Status != orchestrator.Failed {
			t.Errorf("%+v, %v", op, err)
		}
	})
}
