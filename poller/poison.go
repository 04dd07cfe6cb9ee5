package poller

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/durations"
)

// handleFailure handles a batch that the handler rejected: it is retried later, and after some failures the bad row is
// searched.
func (t *tick) handleFailure(ctx context.Context, rows []Row, cause error) error {
	f := t.failure(rows, cause)
	if t.config.Quarantine == nil || (f.Attempts < t.options.MaxAttempts && !f.Bisecting && !IsPermanent(cause)) {
		return t.postpone(f, ErrBatch, cause)
	}
	f.Bisecting = true
	return t.bisect(ctx, rows, &f, cause, max(len(rows), f.Suspects))
}

// failure returns the record of another failure of the batch after the checkpoint.
func (t *tick) failure(rows []Row, cause error) Failure {
	now := t.leases.clock.time()
	f := Failure{FirstAt: now}
	if t.doc.Failure != nil {
		f = *t.doc.Failure
	}
	f.First, f.Rows, f.Attempts = EventID(t.config.Name, rows[0]), len(rows), f.Attempts+1
	f.Error, f.LastAt, f.Breaker = t.errorText(cause), now, false
	return f
}

// postpone records a failure, and returns it as the error of the tick.
func (t *tick) postpone(f Failure, kind, cause error) error {
	delay := durations.Doubled(t.options.RetryDelay, f.Attempts-1, t.options.MaxRetryDelay)
	f.NextAt = f.LastAt.Add(delay)
	failed := fmt.Errorf("%w: %d rows behind %s, attempt %d, again at %s: %w", kind, f.Rows, t.doc.Cursor(), f.Attempts, f.NextAt.Format(time.RFC3339), cause)
	doc, err := t.lease.write(func(d *Document) { d.Failure = &f })
	if err != nil {
		return fmt.Errorf("%w; and it could not be written down: %w", failed, err)
	}
	t.doc = doc
	return failed
}

// bisect delivers rows that failed together in halves, down to the bad row. Delivered rows are committed immediately.
// behind is the number of rows from the first of these to the end of the failed batch.
func (t *tick) bisect(ctx context.Context, rows []Row, f *Failure, cause error, behind int) error {
	if len(rows) == 1 {
		return t.quarantine(ctx, rows[0], f, cause, behind-1)
	}
	half := len(rows) / 2
	for _, part := range [][]Row{rows[:half], rows[half:]} {
		if t.outOfTime() { // the next tick continues here
			return t.suspendBisect(f, part, cause, behind)
		}
		err := t.deliver(ctx, part)
		switch {
		case err == nil:
			err = t.commit(part, 0, remainingFailure(f, behind-len(part)))
		case t.lease.ctx.Err() != nil:
			return fmt.Errorf("deliver: %w", t.withLeaseCause(err))
		case ctx.Err() != nil:
			return fmt.Errorf("deliver: %w", err)
		default:
			err = t.bisect(ctx, part, f, err, behind)
		}
		if err != nil {
			return err
		}
		behind -= len(part)
	}
	return nil
}

// suspendBisect records the progress of the search when the time of the tick is over.
func (t *tick) suspendBisect(f *Failure, next []Row, cause error, behind int) error {
	left := remainingFailure(f, behind)
	left.Rows, left.First = len(next), EventID(t.config.Name, next[0])
	doc, err := t.lease.write(func(d *Document) { d.Failure = left })
	if err != nil {
		return fmt.Errorf("write down how far the search for the row at fault is: %w", err)
	}
	t.doc = doc
	return fmt.Errorf("%w: the row at fault is among %d, and the time is used up: %w", ErrBatch, behind, cause)
}

// remainingFailure returns the record for the rest of a failed batch, nil without a rest. After progress, the rest may
// be tried immediately.
func remainingFailure(f *Failure, rows int) *Failure {
	if rows <= 0 {
		return nil
	}
	left := *f
	left.Rows, left.Suspects, left.First, left.NextAt = rows, rows, "", time.Time{}
	return &left
}

// quarantine quarantines a row, unless too many were quarantined recently.
func (t *tick) quarantine(ctx context.Context, row Row, f *Failure, cause error, left int) error {
	id := EventID(t.config.Name, row)
	counted := Quarantine{}
	if t.doc.Quarantine != nil {
		counted = *t.doc.Quarantine
	}
	if allowed := max(float64(t.options.QuarantineFree), t.options.QuarantineShare*float64(counted.Rows)); float64(counted.Quarantined+1) > allowed {
		stopped := *f
		stopped.First, stopped.Rows, stopped.Breaker = id, 1, true
		return t.postpone(stopped, ErrBreaker, cause)
	}
	bounded, cancel := t.withLease(ctx)
	defer cancel()
	err := t.config.Quarantine(bounded, Quarantined{Poller: t.config.Name, Token: t.lease.acquisition.Token, Row: row, EventID: id,
		Attempts: f.Attempts, Err: cause, FirstFailureAt: f.FirstAt, LastFailureAt: f.LastAt})
	if err != nil {
		return fmt.Errorf("quarantine row %s: %w", id, t.withLeaseCause(err))
	}
	return t.commit([]Row{row}, 1, remainingFailure(f, left))
}
