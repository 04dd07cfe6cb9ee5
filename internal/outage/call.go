package outage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

const (
	// maxUnknown bounds the tries in a row whose outcome is unknown while the service answers other calls.
	maxUnknown = 8
	// maxSends bounds them for a call that is not idempotent: each may add a message.
	maxSends = 2
	// patience bounds how long a request of a person waits for a slot.
	patience = 5 * time.Second
)

// kind is how a call may be made. The zero value is a quick, idempotent one.
type kind struct {
	// tries bounds how often the call is made while its outcome is unknown, even across outages. 0: it is idempotent.
	tries int
	// bulk: the call's duration depends on the amount of data.
	bulk bool
}

// do makes an idempotent call.
func (w *watch) do(ctx context.Context, call func(context.Context) error) error {
	return w.make(ctx, kind{}, call)
}

// make makes a call in the mode of its context.
func (w *watch) make(ctx context.Context, k kind, call func(context.Context) error) error {
	if k.tries == maxSends && storage.SingleTry(ctx) {
		k.tries = 1
	}
	switch m := modeOf(ctx); {
	case m.hurries:
		return w.hurriedly(ctx, k, call)
	case m.waits():
		return w.patiently(ctx, m, k, call)
	}
	err := call(ctx)
	w.heard(ctx, err)
	return err
}

// once makes a call for which a slot is held, and returns the slot.
func (w *watch) once(ctx context.Context, k kind, call func(context.Context) error) error {
	began := time.Now()
	err := call(ctx)
	w.heard(ctx, err)
	w.limiter.release(sample{began: began, busy: silent(err) && ctx.Err() == nil, bulk: k.bulk})
	return err
}

// patiently makes a call until it is answered. When the time of ctx is over, it returns the last answer.
func (w *watch) patiently(ctx context.Context, m mode, k kind, call func(context.Context) error) error {
	var last error
	pause, unknown, tries := w.config.FirstPause, 0, 0
	for {
		waited, err := w.turn(ctx, m)
		if err != nil && last == nil {
			last = w.unavailable() // nothing was sent
		}
		if err != nil {
			return fmt.Errorf("%w: %w", last, err)
		}
		if waited {
			pause, unknown = w.config.FirstPause, 0
		}
		err = w.once(ctx, k, call)
		if !silent(err) {
			return err
		}
		if last = worse(last, err); ctx.Err() != nil || !time.Now().Before(m.until) {
			return last
		}
		if errors.Is(err, storage.ErrOutcomeUnknown) {
			unknown++
			tries++
		}
		out := w.isOut(ctx)
		switch spent := k.tries > 0 && tries >= k.tries; {
		case out && spent:
			_, _ = w.await(ctx) // the caller finds out what was applied
			return last
		case spent || unknown == maxUnknown && !out:
			return last
		case out:
			continue
		}
		// The service answers other calls: it is slow, or the outage was short.
		if sleep(ctx, jittered(pause)) != nil {
			return last
		}
		pause = min(2*pause, w.config.LongestPause)
	}
}

// turn waits for the end of an outage and for a slot. waited reports an outage.
func (w *watch) turn(ctx context.Context, m mode) (waited bool, err error) {
	ctx, cancel := context.WithDeadline(ctx, m.until)
	defer cancel()
	for {
		out, err := w.await(ctx)
		waited = waited || out
		if err != nil {
			return waited, err
		}
		if err := w.limiter.acquire(ctx, priority{since: m.since}); err != nil {
			return waited, err
		}
		if over, _ := w.state(); over == nil {
			return waited, nil
		}
		w.limiter.cancel()
	}
}

// worse returns the error of a call after one more try: the outcome stays unknown once a try has left it open.
func worse(before, now error) error {
	if before == nil || !errors.Is(before, storage.ErrOutcomeUnknown) || errors.Is(now, storage.ErrOutcomeUnknown) {
		return now
	}
	return fmt.Errorf("%w: an earlier try got no answer; the last: %v", storage.ErrOutcomeUnknown, now)
}

// isOut probes the service and reports an outage. It returns false when ctx ends before the answer.
func (w *watch) isOut(ctx context.Context) bool {
	if over, _ := w.state(); over != nil {
		return true
	}
	select {
	case <-w.probe():
	case <-ctx.Done():
		return false
	}
	over, _ := w.state()
	return over != nil
}

// hurriedly makes a call unless an outage is known, and stops waiting for its answer when an outage begins.
func (w *watch) hurriedly(ctx context.Context, k kind, call func(context.Context) error) error {
	if over, next := w.state(); over != nil && !w.overBy(ctx, over, next) {
		return w.unavailable()
	}
	wait, done := context.WithTimeout(ctx, patience)
	err := w.limiter.acquire(wait, priority{request: true, since: time.Now()})
	done()
	switch {
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("%w: %s are overloaded: no call was made within %v: %w", ErrUnavailable, w.service, patience, storage.ErrThrottled)
	case err != nil:
		return fmt.Errorf("%w: %w", storage.ErrThrottled, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(glance, func() {
		if w.isOut(ctx) {
			cancel(ErrUnavailable)
		}
	})
	defer late.Stop()
	err = w.once(ctx, k, call)
	switch {
	case !silent(err) && ctx.Err() == nil:
		return err
	case context.Cause(ctx) == ErrUnavailable:
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, storage.ErrOutcomeUnknown, err)
	case ctx.Err() == nil:
		w.probe() // the result is for the next call
	}
	return err
}

// overBy probes the service if a probe is due, and reports whether the outage ends within a glance.
func (w *watch) overBy(ctx context.Context, over <-chan struct{}, next time.Time) bool {
	if time.Now().Before(next) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	select {
	case <-w.probe():
	case <-ctx.Done():
	}
	select {
	case <-over:
		return true
	default:
		return false
	}
}
