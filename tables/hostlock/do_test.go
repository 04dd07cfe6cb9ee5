package hostlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

func TestDo(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tests := map[string]struct {
		fn   func(ctx context.Context) error
		want error
	}{
		"succeeds": {func(context.Context) error { return nil }, nil},
		"fails":    {func(context.Context) error { return broken }, broken},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := nodes(t, tables.NewMemory(), newClock())
			err := node("a").Do(t.Context(), job, lease, func(ctx context.Context) error {
				if err := node("b").Do(ctx, job, lease, func(context.Context) error { t.Error("b works, too"); return nil }); !errors.Is(err, hostlock.ErrHeld) {
					t.Error(err)
				}
				return tt.fn(ctx)
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if _, err := node("b").Acquire(t.Context(), job, lease); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestAPanicFreesTheLock(t *testing.T) {
	t.Parallel()
	a := nodes(t, tables.NewMemory(), newClock())("a")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = a.Do(t.Context(), job, lease, func(context.Context) error { panic("oh") })
	}()
	if _, err := a.Acquire(t.Context(), job, lease); err != nil {
		t.Error(err)
	}
}

// A canceled caller still releases the lock.
func TestACanceledJobFreesTheLock(t *testing.T) {
	t.Parallel()
	a := nodes(t, tables.NewMemory(), newClock())("a")
	ctx, cancel := context.WithCancel(t.Context())
	err := a.Do(ctx, job, lease, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, hostlock.ErrLost) {
		t.Error(err)
	}
	if _, err := a.Acquire(t.Context(), job, lease); err != nil {
		t.Error(err)
	}
}

// A lock that cannot be renewed, or that another node has taken, ends the work before another node starts it.
func TestALostLockEndsTheWork(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		refuse bool // storage refuses every call once the work has started
		steal  bool // a node with a fast clock takes the lock
	}{"storage is away": {refuse: true}, "taken by another": {steal: true}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := tables.NewMemory()
				var away atomic.Bool
				plan := &faults.Plan{Refuse: func(faults.Call) bool { return away.Load() }}
				a := hostlock.Locks{Tables: faults.Tables(store, plan.Intercept), Node: named("a")}
				early := hostlock.Locks{Tables: store, Node: named("b"), Now: func() time.Time { return time.Now().Add(2 * lease) }}
				testenv.OK(t, a.CreateTable(t.Context()))
				began := time.Now()
				err := a.Do(t.Context(), job, lease, func(ctx context.Context) error {
					away.Store(tt.refuse)
					if tt.steal {
						if _, err := early.Acquire(ctx, job, lease); err != nil {
							t.Error(err)
						}
					}
					<-ctx.Done()
					away.Store(false)
					if !errors.Is(context.Cause(ctx), hostlock.ErrLost) || time.Since(began) > lease {
						t.Errorf("after %v: %v", time.Since(began), context.Cause(ctx))
					}
					return ctx.Err()
				})
				if !errors.Is(err, hostlock.ErrLost) || !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				_, err = a.Acquire(t.Context(), job, lease)
				if held := errors.Is(err, hostlock.ErrHeld); held != tt.steal {
					t.Errorf("who lost the lock has changed it: %v", err)
				}
			})
		})
	}
}
