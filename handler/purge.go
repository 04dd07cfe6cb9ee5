package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const (
	// purgeJob is the lock of the one active purger, purgeLease the wait after it dies.
	purgeJob   = "retention"
	purgeLease = time.Minute
	// purgeSlice is the number of orchestrations to purge between two checks of the time.
	purgeSlice = 100
)

// purger purges orchestrations that ended long enough ago: rounds, payloads in blobs, and the records of bulk
// operations, which are orchestrations, too.
type purger struct {
	runtime *orchestrator.Runtime
	locks   hostlock.Locks
	log     *slog.Logger
	now     func() time.Time
	keep    time.Duration
	// next is the place of a run that timed out; empty at the end.
	next atomic.Value
}

// handle purges slice by slice for as long as the invocation has time. The next run purges the rest: it continues
// from the same place in this process, else from the start. While another one is running, it does nothing.
func (r *purger) handle(ctx context.Context, _ trigger.TimerDelivery) error {
	before, purged, damaged := r.now().Add(-r.keep), 0, 0
	err := r.locks.Do(ctx, purgeJob, purgeLease, func(ctx context.Context) (err error) {
		purged, damaged, err = r.purge(ctx, before)
		return err
	})
	outOfTime := errors.Is(context.Cause(ctx), trigger.ErrBudget)
	switch {
	case errors.Is(err, hostlock.ErrHeld):
		r.log.DebugContext(ctx, "orchestration retention left to another", "error", err.Error())
		return nil
	case err != nil && !outOfTime:
		return fmt.Errorf("purge orchestrations that ended before %s, after %d: %w", before.Format(time.RFC3339), purged, err)
	}
	r.log.Log(ctx, levelFor(purged+damaged > 0 || err != nil), "orchestration retention", "purged", purged, "damaged", damaged, "before", before, "complete", err == nil)
	return nil
}

// purge purges old orchestrations, from the place of the last run to the end, and counts unreadable ones that it
// left. Its error is the context's when time is up.
func (r *purger) purge(ctx context.Context, before time.Time) (purged, damaged int, err error) {
	next, _ := r.next.Load().(string)
	r.next.Store("") // any error but a timeout starts over: the place could be its cause
	for {
		done, err := r.runtime.PurgeAll(ctx, orchestrator.Filter{EndedBefore: before}, purgeSlice, next)
		purged, damaged = purged+done.Orchestrations, damaged+done.Damaged
		if err == nil && done.Continuation == "" {
			return purged, damaged, nil
		}
		next = done.Continuation
		if ctx.Err() != nil {
			r.next.Store(next)
			return purged, damaged, context.Cause(ctx)
		}
		if err != nil {
			return purged, damaged, err
		}
	}
}
