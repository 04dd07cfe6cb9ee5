package worker

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const (
	// sweeperJob is the lock of the one active sweeper among all workers and hosts that share the storage, and
	// retentionJob that of the one purger.
	sweeperJob   = "sweeper"
	retentionJob = "retention"
	// jobLease is the lease of a job's lock: others wait for it when the holder dies.
	jobLease = time.Minute
	// sweepLimit bounds the orchestrations that one sweep wakes.
	sweepLimit = 1000
	// purgeInterval is the interval of the purge, purgeSlice the size of its slices.
	purgeInterval = time.Hour
	purgeSlice    = 100
	// blobAge is the minimum age of an orphaned payload: a payload is written before the row that names it.
	blobAge = 72 * time.Hour
)

// keepSweeping wakes orchestrations whose messages are lost, until ctx ends. It starts later than the listeners: a
// message to be abandoned must not be overtaken by one that wakes the same orchestration.
func (w *Worker) keepSweeping(ctx context.Context) {
	pause(ctx, w.config.SweepInterval)
	every(ctx, w.config.SweepInterval, func() {
		w.alone(ctx, sweeperJob, func(ctx context.Context) error {
			woken, err := w.runtime.Sweep(ctx, sweepLimit)
			if woken > 0 {
				w.log.InfoContext(ctx, "orchestrations whose messages were lost are woken", "orchestrations", woken)
			}
			return err
		})
	})
}

// keepPurging removes orchestrations that ended long enough ago, until ctx ends.
func (w *Worker) keepPurging(ctx context.Context) {
	every(ctx, purgeInterval, func() { w.alone(ctx, retentionJob, w.purge) })
}

// purge removes orchestrations that ended long enough ago, and then unreferenced payload blobs.
func (w *Worker) purge(ctx context.Context) error {
	ended := orchestrator.Filter{EndedBefore: time.Now().Add(-w.config.Retention)}
	for next, more := "", true; more; more = next != "" {
		purged, err := w.runtime.PurgeAll(ctx, ended, purgeSlice, next)
		if err != nil {
			return err
		}
		next = purged.Continuation
	}
	busy, err := w.holdsMessages(ctx)
	if err != nil {
		return err
	}
	before := time.Now().Add(-max(w.config.Retention, blobAge))
	wanted := func(context.Context, string) (bool, error) { return busy, nil }
	for next, more := "", true; more; more = next != "" {
		if _, next, err = w.runtime.SweepBlobs(ctx, before, next, wanted); err != nil {
			return err
		}
	}
	return nil
}

// holdsMessages reports whether any queue has messages: they may name payloads, and queues cannot be searched.
func (w *Worker) holdsMessages(ctx context.Context) (bool, error) {
	for _, l := range w.listeners {
		for _, queue := range []string{l.queue, l.dead} {
			if n, err := w.queues.Length(ctx, queue); err != nil || n > 0 {
				return n > 0, err
			}
		}
	}
	return false, nil
}

// alone runs a job unless another worker is running it. A failed job is retried at the next interval.
func (w *Worker) alone(ctx context.Context, job string, do func(ctx context.Context) error) {
	err := w.locks.Do(ctx, job, jobLease, do)
	if err != nil && !errors.Is(err, hostlock.ErrHeld) && ctx.Err() == nil {
		w.log.WarnContext(ctx, "a job failed: it is done again", "job", job, "error", err.Error())
	}
}
