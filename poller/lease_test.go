package poller_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

// A lease is taken only after its end and the margin after that, by the clock of the store; the next owner gets the
// next token. Wrong clocks of processes make no difference.
func TestLeaseIsTakenAMarginAfterItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(3)
		if _, err := w.process(&faults.Plan{At: callDeliver, Fault: faults.CrashAfter}, nil).Tick(t.Context()); !errors.Is(err, faults.ErrCrashed) {
			t.Fatal(err)
		}
		end := w.document().Lease.Expires
		if left := time.Until(end); left != 2*time.Minute {
			t.Fatalf("the lease lasts %v", left)
		}
		for _, before := range []time.Duration{time.Minute, time.Second, 0, -4 * time.Second} {
			wait(time.Until(end) - before)
			for _, off := range []time.Duration{-24 * time.Hour, 0, 24 * time.Hour} {
				wrong := w.process(nil, func(c *poller.RunnerConfig) { c.Now = func() time.Time { return time.Now().Add(off) } })
				if result := w.tick(wrong); !errors.Is(result.Skipped, poller.ErrHeld) {
					t.Errorf("%v before the end, by a clock that is off by %v: %+v", before, off, result)
				}
			}
		}
		wait(time.Second)
		if result := w.tick(w.process(nil, nil)); result.Rows != 3 {
			t.Errorf("five seconds behind the end: %+v", result)
		}
		testenv.Equal(t, "tokens", []int64{1, 2}, w.tokens)
	})
}

// Of concurrent processes with a free lease, one gets it, and the others leave the work alone.
func TestOneOfManyGetsTheLease(t *testing.T) {
	for what, ended := range map[string]bool{"a new poller": false, "a lease that has ended": true} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.source.Append(3)
				token := int64(1)
				if ended {
					if _, err := w.process(&faults.Plan{At: callDeliver, Fault: faults.CrashBefore}, nil).Tick(t.Context()); !errors.Is(err, faults.ErrCrashed) {
						t.Fatal(err)
					}
					wait(time.Hour)
					token = 2
				}
				// All have read the same version before the first write.
				const many = 6
				gate := &meeting{Store: w.store(), left: many, all: make(chan struct{})}
				w.deliver = func(context.Context, poller.Delivery) error { wait(time.Minute); return nil }
				results := make(chan poller.Result, many)
				for range many {
					r := w.process(nil, func(c *poller.RunnerConfig) { c.Store = gate })
					go func() {
						result, err := r.Tick(t.Context())
						if err != nil {
							t.Error(err)
						}
						results <- result
					}()
				}
				delivered, held := 0, 0
				for range many {
					switch result := <-results; {
					case errors.Is(result.Skipped, poller.ErrHeld):
						held++
					case result.Rows == 3:
						delivered++
					}
				}
				if delivered != 1 || held != many-1 {
					t.Errorf("%d delivered, %d left it alone", delivered, held)
				}
				testenv.Equal(t, "tokens", []int64{token}, w.tokens)
			})
		})
	}
}

// meeting is a store whose first writes wait for each other.
type meeting struct {
	poller.Store
	left int32
	came atomic.Int32
	all  chan struct{}
}

func (m *meeting) Swap(ctx context.Context, name string, data []byte, etag string) (poller.State, error) {
	if m.came.Add(1) == m.left {
		close(m.all)
	}
	<-m.all
	return m.Store.Swap(ctx, name, data, etag)
}

// A failed heartbeat is repeated while time remains: the handler continues, and its batch is committed.
func TestHeartbeatsAreMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Append(1)
		began := time.Now()
		refusing := &refusing{Store: w.store(), from: began.Add(30 * time.Second), to: began.Add(100 * time.Second)}
		w.deliver = func(ctx context.Context, _ poller.Delivery) error {
			wait(5 * time.Minute)
			return ctx.Err()
		}
		r := w.process(nil, func(c *poller.RunnerConfig) { c.Store = refusing })
		if result := w.tick(r); result.Rows != 1 || refusing.refused < 3 || r.Counters().LeasesLost != 0 {
			t.Errorf("%+v after %d refused writes", result, refusing.refused)
		}
	})
}

// refusing is a store that refuses writes for a time.
type refusing struct {
	poller.Store
	from, to time.Time
	refused  int
}

func (r *refusing) Swap(ctx context.Context, name string, data []byte, etag string) (poller.State, error) {
	if now := time.Now(); now.After(r.from) && now.Before(r.to) {
		r.refused++
		return poller.State{}, errors.New("forbidden")
	}
	return r.Store.Swap(ctx, name, data, etag)
}
