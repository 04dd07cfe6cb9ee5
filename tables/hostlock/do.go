package hostlock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// renewals is how many times a lease is renewed before it would end: some may fail.
	renewals = 3
	// releaseTimeout bounds the release, which goes on when the time of the caller is over.
	releaseTimeout = 10 * time.Second
)

// Do runs fn under the lock of a job, or gives ErrHeld without running it. The lease is renewed while fn runs, so it can
// be short: it is how long others wait when this process dies. When the lock is lost, the context of fn ends with ErrLost
// as its cause. The error is fn's, and that of a release that failed: then the lock is free when its lease ends.
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
		} // else there is time for another try, or the lease ends
	}
}

// renewInTime renews a lock while its lease lasts: an answer that comes later is none.
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
