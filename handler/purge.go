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
	// purgeJob is the lock that one purger at a time holds, purgeLease how long others wait when it dies at work.
	purgeJob   = "retention"
	purgeLease = time.Minute
	// purgeSlice is how many orchestrations are purged between two looks at the clock.
	purgeSlice = 100
)

// purger is what purges orchestrations that ended long enough ago: rounds, payloads in blobs, and
// the records of bulk operations, which are orchestrations, too.
type purger struct {
	runtime *orchestrator.Runtime
	locks   hostlock.Locks
	log     *slog.Logger
	now     func() time.Time
	keep    time.Duration
	// next is where a run stopped that ran out of time; empty: at the end.
	next atomic.Value
}

// handle purges slice by slice for as long as the invocation has time. What is left is the next run's: it goes on where
// this one stopped, if it runs in this process, else from the start. When another one is at work, there is nothing to do.
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

// purge purges what ended before, from where the last run stopped to the end, and counts what it left because it cannot be
// read. Its error is the context's when time is up.
func (r *purger) purge(ctx context.Context, before time.Time) (purged, damaged int, err error) {
	next, _ := r.next.Load().(string)
	r.next.Store("") // an error that is not the end of the time begins anew: the place could be its cause
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
