package poller_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

// failing returns a plan for the nth call of an operation, of those that a first process makes with one batch: Get,
// Fetch, PutIf (acquire), Deliver, PutIf (commit), PutIf (release).
const (
	callAcquire = 3
	callDeliver = 4
	callCommit  = 5
)

// Section 11: the write succeeds, then the function exits.
func TestCommittedThenDead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		if _, err := w.process(&faults.Plan{At: callCommit, Fault: faults.CrashAfter}, nil).Tick(t.Context()); !errors.Is(err, faults.ErrCrashed) {
			t.Fatal(err)
		}
		wait(10 * time.Minute)
		w.source.Append(2)
		w.tick(w.process(nil, nil))
		testenv.Equal(t, "", numbers(1, 5), w.delivered)
	})
}

// Section 11: the handler succeeds, the write fails.
func TestDeliveredNotCommitted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		r := w.process(&faults.Plan{At: callCommit, Fault: faults.CrashBefore}, nil)
		if _, err := r.Tick(t.Context()); !errors.Is(err, faults.ErrCrashed) || !errors.Is(err, poller.ErrCommit) {
			t.Fatal(err)
		}
		if c := r.Counters(); c.Unconfirmed != 3 || c.Rows != 0 {
			t.Errorf("%+v", c)
		}
		wait(10 * time.Minute)
		w.tick(w.process(nil, nil))
		testenv.Equal(t, "", append(numbers(1, 3), numbers(1, 3)...), w.delivered)
	})
}

// Section 11: the answer to the write is lost. Its outcome is resolved immediately.
func TestAmbiguousCommitIsResolvedAtOnce(t *testing.T) {
	for _, fault := range []faults.Fault{faults.Applied, faults.Unknown, faults.Slow, faults.Precondition, faults.Throttled} {
		for call, what := range map[int]string{callAcquire: "acquire", callCommit: "commit"} {
			t.Run(what+"/"+fault.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					w.source.Append(3)
					plan := &faults.Plan{At: call, Fault: fault}
					if what == "acquire" && fault == faults.Throttled {
						t.Log("a refused acquisition is the next tick's")
						return
					}
					result := w.tick(w.process(plan, nil))
					plan.Wait()
					if result.Rows != 3 {
						t.Errorf("%+v", result)
					}
					testenv.Equal(t, "", numbers(1, 3), w.delivered)
				})
			})
		}
	}
}

// Section 11: the lease ends and another process takes over. The stale owner's commit is refused, however late it
// comes.
func TestStaleOwnerCannotCommit(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		var other poller.Result
		stuck := &stuckStore{Store: w.store(), release: make(chan struct{})}
		paused := w.process(nil, func(c *poller.RunnerConfig) { c.Store = stuck })
		w.deliver = func(_ context.Context, d poller.Delivery) error {
			if d.Token > 1 {
				return nil
			}
			stuck.stop() // this process is suspended, with its heartbeats
			wait(10 * time.Minute)
			other = w.tick(w.process(nil, nil))
			close(stuck.release)
			return nil // ignores the end of its context
		}
		_, err := paused.Tick(t.Context())
		if !errors.Is(err, poller.ErrLost) || !errors.Is(err, poller.ErrCommit) || paused.Counters().LeasesLost != 1 {
			t.Errorf("the paused owner: %v, %+v", err, paused.Counters())
		}
		if other.Rows != 3 {
			t.Errorf("the other: %+v", other)
		}
		testenv.Equal(t, "tokens", []int64{2, 1}, w.tokens)
		if d := w.document(); d.Lease.Token != 2 || d.Cursor().Value != "3" {
			t.Errorf("%+v", d)
		}
	})
}

// stuckStore is the store of a process that is suspended from stop to release: its writes arrive late.
type stuckStore struct {
	poller.Store
	stopped atomic.Bool
	release chan struct{}
}

func (s *stuckStore) stop() { s.stopped.Store(true) }

func (s *stuckStore) Swap(ctx context.Context, name string, data []byte, etag string) (poller.State, error) {
	if s.stopped.Load() {
		<-s.release
		ctx = context.WithoutCancel(ctx)
	}
	return s.Store.Swap(ctx, name, data, etag)
}

// Section 11: the heartbeat finds that another process has the lease. The handler is stopped, and nothing is committed.
func TestHeartbeatFindsTheLeaseLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		var stopped time.Duration
		w.deliver = func(ctx context.Context, _ poller.Delivery) error {
			began := time.Now()
			testenv.Must(w.operator().BreakLease(t.Context(), name, poller.ChangeOptions{Force: true}))(t)
			<-ctx.Done()
			stopped = time.Since(began)
			if !errors.Is(context.Cause(ctx), poller.ErrLost) {
				t.Errorf("the handler was stopped by %v", context.Cause(ctx))
			}
			return ctx.Err()
		}
		before := 0
		r := w.process(nil, nil)
		_, err := r.Tick(t.Context())
		if !errors.Is(err, poller.ErrLost) {
			t.Errorf("got %v", err)
		}
		if stopped != 40*time.Second {
			t.Errorf("stopped after %v, not at the first heartbeat", stopped)
		}
		if d := w.document(); d.Checkpoint != nil || d.Failure != nil || d.Lease.Token != 2 {
			t.Errorf("%+v", d)
		}
		if before = w.state.count(); before != 2 { // acquire and break
			t.Errorf("%d writes", before)
		}
	})
}

// Without answers, the owner stops by its own clock, before another process may start.
func TestHandlerStopsWhenTheLeaseCannotBeRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		var down atomic.Bool
		plan := &faults.Plan{Refuse: func(c faults.Call) bool { return down.Load() && c.Service == "blobs" }}
		began := time.Now()
		w.deliver = func(ctx context.Context, _ poller.Delivery) error {
			down.Store(true)
			<-ctx.Done()
			return ctx.Err()
		}
		_, err := w.process(plan, nil).Tick(t.Context())
		if took := time.Since(began); !errors.Is(err, poller.ErrLost) || took != 115*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// A tick that is cancelled while the handler works commits the delivered rows.
func TestCancelledTickCommitsWhatWasDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(300)
		ctx, cancel := context.WithCancel(t.Context())
		w.deliver = func(context.Context, poller.Delivery) error { cancel(); return nil }
		result, err := w.process(nil, nil).Tick(ctx)
		if err != nil || result.Rows != 100 || w.document().Cursor().Value != "100" || w.document().Lease.Owner != "" {
			t.Errorf("%+v, %v", result, err)
		}
		// A handler that stops on cancellation is not a failure.
		ctx, cancel = context.WithCancel(t.Context())
		w.deliver = func(ctx context.Context, _ poller.Delivery) error { cancel(); <-ctx.Done(); return ctx.Err() }
		if _, err := w.process(nil, nil).Tick(ctx); !errors.Is(err, context.Canceled) || w.document().Failure != nil {
			t.Errorf("%v, %+v", err, w.document().Failure)
		}
	})
}

// poisoned returns a handler that refuses deliveries with any of these rows.
func poisoned(rows ...int) func(context.Context, poller.Delivery) error {
	return func(_ context.Context, d poller.Delivery) error {
		for _, row := range d.Rows {
			for _, n := range rows {
				if row.Cursor.Value == numberText(n) {
					return errors.New("row " + row.Cursor.Value + " is refused")
				}
			}
		}
		return nil
	}
}

func TestPoisonRowGoesToQuarantine(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(200)
		w.deliver = poisoned(37, 38, 150)
		r := w.process(nil, nil)
		failures := 0
		for w.document0().Cursor().Value != "200" {
			_, err := r.Tick(t.Context())
			if err != nil {
				failures++
				if !errors.Is(err, poller.ErrBatch) {
					t.Fatal(err)
				}
				if result := w.tick(r); !errors.Is(result.Skipped, poller.ErrWaiting) {
					t.Errorf("right after a failure: %+v", result)
				}
			}
			wait(time.Minute)
		}
		delivered, quarantined := w.times()
		testenv.Equal(t, "quarantined", map[int]int{37: 1, 38: 1, 150: 1}, quarantined)
		for _, n := range numbers(1, 200) {
			if delivered[n]+quarantined[n] != 1 {
				t.Errorf("row %d: delivered %d times, quarantined %d times", n, delivered[n], quarantined[n])
			}
		}
		if !slices.IsSorted(w.delivered) {
			t.Error("the order was not kept")
		}
		if failures != 8 { // four postponed for each batch, and the fifth searches for the row
			t.Errorf("%d ticks failed", failures)
		}
		if d := w.document(); d.Failure != nil || d.Quarantine.Quarantined != 3 {
			t.Errorf("%+v %+v", d.Failure, d.Quarantine)
		}
	})
}

func TestPermanentErrorsAreNotRetried(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(10)
		inner := poisoned(4)
		w.deliver = func(ctx context.Context, d poller.Delivery) error { return poller.Permanent(inner(ctx, d)) }
		if result := w.tick(w.process(nil, nil)); result.Rows != 10 || result.Quarantined != 1 {
			t.Errorf("%+v", result)
		}
	})
}

func TestPanicsAreFailures(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(1)
		w.deliver = func(context.Context, poller.Delivery) error { panic("no") }
		if _, err := w.process(nil, nil).Tick(t.Context()); !errors.Is(err, poller.ErrBatch) {
			t.Errorf("%v", err)
		}
		if f := w.document().Failure; f == nil || f.Attempts != 1 || f.Rows != 1 || f.First == "" || f.NextAt.Sub(f.LastAt) != 30*time.Second {
			t.Errorf("%+v", f)
		}
	})
}

// A handler that rejects everything must not drain the table into the dead letters.
func TestBreakerStopsTheQuarantine(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(500)
		broken := true
		w.deliver = func(context.Context, poller.Delivery) error {
			if broken {
				return errors.New("down")
			}
			return nil
		}
		r := w.process(nil, nil)
		var last error
		for range 60 {
			if _, err := r.Tick(t.Context()); err != nil {
				last = err
			}
			wait(time.Hour)
		}
		if len(w.quarantined) != 5 || !errors.Is(last, poller.ErrBreaker) || !w.document().Failure.Breaker {
			t.Errorf("%d rows in quarantine, %v", len(w.quarantined), last)
		}
		broken = false
		if result := w.tick(r); result.Rows == 0 {
			t.Errorf("%+v", result)
		}
		for !w.tick(r).Drained {
		}
		if len(w.delivered) != 495 || w.document().Failure != nil {
			t.Errorf("%d rows delivered", len(w.delivered))
		}
	})
}

// Without a quarantine no row is skipped.
func TestWithoutQuarantineTheRowHoldsThePollerUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(10)
		w.deliver = poisoned(3)
		r := w.process(nil, func(c *poller.RunnerConfig) { c.Quarantine = nil })
		for range 20 {
			if _, err := r.Tick(t.Context()); !errors.Is(err, poller.ErrBatch) {
				t.Fatal(err)
			}
			wait(time.Hour)
		}
		if d := w.document(); d.Checkpoint != nil || d.Failure.Attempts != 20 || d.Failure.NextAt.Sub(d.Failure.LastAt) != 15*time.Minute {
			t.Errorf("%+v", d.Failure)
		}
	})
}

// The search for a bad row continues where its tick had to stop.
func TestSearchIsInterrupted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(64)
		refuse := poisoned(50)
		w.deliver = func(ctx context.Context, d poller.Delivery) error {
			wait(20 * time.Second)
			return refuse(ctx, d)
		}
		r := w.process(nil, func(c *poller.RunnerConfig) { c.Options.Budget, c.Options.MaxAttempts = time.Minute, 1 })
		for i := 0; w.document0().Cursor().Value != "64"; i++ {
			if _, err := r.Tick(t.Context()); err != nil && !errors.Is(err, poller.ErrBatch) || i > 20 {
				t.Fatal(i, err)
			}
		}
		delivered, quarantined := w.times()
		if len(delivered) != 63 || quarantined[50] != 1 || len(w.delivered) != 63 {
			t.Errorf("%d rows delivered, in quarantine %v", len(w.delivered), quarantined)
		}
	})
}
