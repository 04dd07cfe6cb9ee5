package outage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// maxUnknown is how often in a row a call is made that gets no answer while its service answers others.
const maxUnknown = 8

// do makes a call as its context wants it.
func (w *watch) do(ctx context.Context, call func(context.Context) error) error {
	return w.make(ctx, call, false)
}

// doOnce is do for a call that must not be repeated once it may have been applied. Then it waits for storage all the same, so that
// the caller can find out what has become of it.
func (w *watch) doOnce(ctx context.Context, call func(context.Context) error) error {
	return w.make(ctx, call, true)
}

func (w *watch) make(ctx context.Context, call func(context.Context) error, once bool) error {
	switch m := modeOf(ctx); {
	case m.hurries:
		return w.hurriedly(ctx, call)
	case m.waits():
		return w.patiently(ctx, m.until, call, once)
	}
	return call(ctx)
}

// patiently makes a call until it is answered. Once ctx may not wait any more, what the last try said is the answer.
func (w *watch) patiently(ctx context.Context, until time.Time, call func(context.Context) error, once bool) error {
	var last error
	pause, unknown := w.config.FirstPause, 0
	for {
		wait, cancel := context.WithDeadline(ctx, until)
		waited, err := w.await(wait)
		cancel()
		if err != nil && last == nil {
			last = w.unavailable() // nothing was sent
		}
		if err != nil {
			return fmt.Errorf("%w: %w", last, err)
		}
		if waited {
			pause, unknown = w.config.FirstPause, 0
		}
		err = call(ctx)
		if !silent(err) {
			return err
		}
		if last = worse(last, err); ctx.Err() != nil || !time.Now().Before(until) {
			return last
		}
		out, unclear := w.isOut(ctx), once && errors.Is(err, storage.ErrOutcomeUnknown)
		switch {
		case out && unclear:
			_, _ = w.await(ctx)
			return last
		case unclear:
			return last
		case out:
			continue
		}
		// The service answers, and this call is not: it is late, or the outage was short.
		if errors.Is(err, storage.ErrOutcomeUnknown) {
			if unknown++; unknown == maxUnknown {
				return last
			}
		}
		if sleep(ctx, jittered(pause)) != nil {
			return last
		}
		pause = min(2*pause, w.config.LongestPause)
	}
}

// worse is the error of a call after one more try: whether anything was applied is not known once a try has left it open.
func worse(before, now error) error {
	if before == nil || !errors.Is(before, storage.ErrOutcomeUnknown) || errors.Is(now, storage.ErrOutcomeUnknown) {
		return now
	}
	return fmt.Errorf("%w: an earlier try got no answer; the last: %v", storage.ErrOutcomeUnknown, now)
}

// isOut asks the service, and says whether there is an outage. It says no when ctx ends before the answer.
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

// hurriedly makes a call unless there is an outage, and does not wait for its answer when it turns out that there is one.
func (w *watch) hurriedly(ctx context.Context, call func(context.Context) error) error {
	if over, next := w.state(); over != nil && !w.overBy(ctx, over, next) {
		return w.unavailable()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(glance, func() {
		if w.isOut(ctx) {
			cancel(ErrUnavailable)
		}
	})
	defer late.Stop()
	err := call(ctx)
	switch {
	case !silent(err) && ctx.Err() == nil:
		return err
	case context.Cause(ctx) == ErrUnavailable:
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, storage.ErrOutcomeUnknown, err)
	case ctx.Err() == nil:
		w.probe() // the next call is to know
	}
	return err
}

// overBy asks the service if that is due, and says whether the outage is over, as far as a glance shows.
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
