// Package fresh holds values that are dear to get and may be a little old, so that nobody who asks for them often can
// make storage pay for it.
//
// It promises that a value was loaded no longer than its maximum age ago, that one load runs at a time, and that a caller
// waits no longer than its context lasts. A load is a goroutine that ends with its time-out. The package owns no storage
// keys.
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
	// Load gets a new one; it returns when its context ends. An error, or a panic, is kept as long as a value is: what
	// fails is not asked for more often.
	Load func(ctx context.Context) (T, error)
	// Timeout bounds a Load, whoever waits for it.
	Timeout time.Duration
	MaxAge  time.Duration
	Now     func() time.Time

	mu      sync.Mutex
	loading chan struct{} // closed when the load is over; nil when there is none
	last    loaded[T]
}

type loaded[T any] struct {
	value T
	err   error
	at    time.Time
}

// Get is the value. The error is that of Load, or that of ctx if it ends first.
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

// current is the last value, or else what tells that there is a new one.
func (v *Value[T]) current(ctx context.Context) (loaded[T], <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if age := v.Now().Sub(v.last.at); !v.last.at.IsZero() && age >= 0 && age < v.MaxAge {
		return v.last, nil
	}
	if v.loading == nil {
		v.loading = make(chan struct{})
		go v.load(quota.Free(context.WithoutCancel(ctx)), v.loading) // for all who wait, so it is charged to none of them
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

// guarded makes a panic an error: nobody else guards this goroutine.
func (v *Value[T]) guarded(ctx context.Context) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return v.Load(ctx)
}
