// Package fresh caches values that are expensive to load and may be slightly stale.
//
// A value is at most its maximum age old, one load runs at a time, and a caller waits no longer than its context
// lasts. A load is a goroutine that ends with its timeout. The package owns no storage keys.
package fresh

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/handler/quota"
)

// Value is a value that may be up to MaxAge old. All fields are required and not changed after the first Get. It is safe
// for concurrent use.
type Value[T any] struct {
	// Load loads a new value; it returns when its context ends. An error, or a panic, is cached as long as a value: a
	// failing load is not repeated more often.
	Load func(ctx context.Context) (T, error)
	// Timeout bounds a Load, for all waiting callers.
	Timeout time.Duration
	MaxAge  time.Duration
	Now     func() time.Time

	mu      sync.Mutex
	loading chan struct{} // closed when the load is over; nil for none
	last    loaded[T]
}

type loaded[T any] struct {
	value T
	err   error
	at    time.Time
}

// Get returns the value. The error is that of Load, or that of ctx if it ends first.
func (v *Value[T]) Get(ctx context.Context) (T, error) {
	last, loading := v.current(ctx)
	if loading == nil {
		return last.value, last.err
	}
	select {
	case <-loading:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last.value, v.last.err
}

// current returns the last value, or else a channel that is closed when a new one is loaded.
func (v *Value[T]) current(ctx context.Context) (loaded[T], <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if age := v.Now().Sub(v.last.at); !v.last.at.IsZero() && age >= 0 && age < v.MaxAge {
		return v.last, nil
	}
	if v.loading == nil {
		v.loading = make(chan struct{})
		go v.load(quota.Free(context.WithoutCancel(ctx)), v.loading) // shared by all waiting callers, so it is not charged
	}
	return loaded[T]{}, v.loading
}

func (v *Value[T]) load(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	began := v.Now()
	value, err := v.guarded(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = loaded[T]{value, err, began}
	v.loading = nil
	close(done)
}

// guarded converts a panic to an error: no other code recovers in this goroutine.
func (v *Value[T]) guarded(ctx context.Context) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return v.Load(ctx)
}
