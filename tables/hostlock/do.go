package hostlock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// renewals is how often a lease is renewed within its duration: some renewals may fail.
	renewals = 3
	// releaseTimeout bounds the release, which continues after the caller's context has ended.
	releaseTimeout = 10 * time.Second
)

// Do runs fn under the lock of a job, or returns ErrHeld without running it. The lease is renewed while fn runs, so it
// can be short: it is how long other processes wait when this one dies. When the lock is lost, the context of fn ends
// with cause ErrLost. The error is fn's, joined with that of a failed release; the lock is then free when its lease
// ends.
func (l Locks) Do(ctx context.Context, job string, lease time.Duration, fn func(ctx context.Context) error) (err error) {
	held, err := l.Acquire(ctx, job, lease)
	if err != nil {
		return err
	}
	work, stop := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		stop(l.keep(work, held, lease))
	}()
	defer func() { // also when fn panics
		stop(nil)
		<-kept
		lost := errors.Is(context.Cause(work), ErrLost)
		if lost && err != nil {
			err = fmt.Errorf("%w: %w", context.Cause(work), err)
		}
		if released := l.free(ctx, held); !errors.Is(released, ErrLost) {
			err = errors.Join(err, released)
		}
	}()
	return fn(work)
}

// keep renews a lock until ctx ends, and returns when it is lost.
func (l Locks) keep(ctx context.Context, held Lock, lease time.Duration) error {
	for {
		left := held.Until.Sub(l.now())
		if left <= 0 {
			return fmt.Errorf("lock %s: its lease has ended: %w", held.Job, ErrLost)
		}
		pause := time.NewTimer(min(left, lease/renewals))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
		renewed, err := l.renewInTime(ctx, held, lease)
		if errors.Is(err, ErrLost) {
			return err
		}
		if err == nil {
			held = renewed
		} // otherwise try again, or the lease ends
	}
}

// renewInTime renews a lock before its lease ends and ignores a later answer.
func (l Locks) renewInTime(ctx context.Context, held Lock, lease time.Duration) (Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, held.Until.Sub(l.now()))
	defer cancel()
	return l.Renew(ctx, held, lease)
}

func (l Locks) free(ctx context.Context, held Lock) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	return l.Release(ctx, held)
}
