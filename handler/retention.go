package handler

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const (
	// retentionLease is the wait after a retention dies.
	retentionLease = time.Minute
	// retentionSlice is the number of rows between two checks of the time.
	retentionSlice = 500
)

// retention deletes old rows, for a job.
type retention struct {
	job   string
	slice func(ctx context.Context) (removed int, more bool, err error)
	locks hostlock.Locks
	log   *slog.Logger
}

// rows returns slices of a table of engines, by rules for different ones: a slice deletes by each of them.
func rows(rules func(context.Context) ([]engine.Retention, error), slice func(context.Context, engine.Retention, time.Time, int) (int, bool, error)) func(context.Context) (int, bool, error) {
	return func(ctx context.Context) (removed int, more bool, err error) {
		all, err := rules(ctx)
		if err != nil {
			return 0, false, err
		}
		for _, rule := range all {
			n, left, err := slice(ctx, rule, time.Now(), retentionSlice)
			removed, more = removed+n, more || left
			if err != nil {
				return removed, more, err
			}
		}
		return removed, more, nil
	}
}

// run deletes slice after slice until none is left (complete) or the invocation times out; the next run continues.
// While another one is running, it does nothing.
func (r retention) run(ctx context.Context) (complete bool, err error) {
	removed := 0
	err = r.locks.Do(ctx, r.job, retentionLease, func(ctx context.Context) error {
		for more := true; more && ctx.Err() == nil; {
			var n int
			var err error
			if n, more, err = r.slice(ctx); err != nil {
				return err
			}
			removed, complete = removed+n, !more
		}
		return nil
	})
	if errors.Is(err, hostlock.ErrHeld) {
		r.log.DebugContext(ctx, "retention left to another", "job", r.job, "error", err.Error())
		return false, nil
	}
	complete = complete && err == nil
	r.log.Log(ctx, levelFor(removed > 0 || !complete), "retention", "job", r.job, "removed", removed, "complete", complete)
	return complete, err
}
