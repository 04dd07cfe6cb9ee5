package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/internal/outage"
)

// isStall reports whether an error means that the code cannot continue until it is fixed.
func isStall(err error) bool {
	_, undetermined := errors.AsType[*DeterminismError](err)
	_, deadlocked := errors.AsType[*DeadlockError](err)
	return undetermined || deadlocked || errors.Is(err, ErrUnknownActivity) || errors.Is(err, ErrUnknownOrchestrator)
}

// stall records that the code cannot continue, and keeps the contents of signals until it can. The sweeper tries
// again. An orchestration without rounds is not stalled; its caller gets the cause as an error.
func (d *driver) stall(ctx context.Context, cause error) (Outcome, error) {
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	for try := 0; ; try++ {
		err := d.recordStall(ctx, cause)
		if _, blocked := errors.AsType[*BlockedError](cause); blocked && errors.Is(err, ErrNotFound) && !d.request.deliver {
			// An orchestration that blocks in its first turn has to be started before it can be stalled.
			err = d.rt.commitHeld(ctx, plannedExecution{start: d.request, number: 1, event: event{Start: &startDetails{Base: 1, First: 1}, Payload: d.request.Input}}, nil, "")
			if err == nil {
				err = d.recordStall(ctx, cause)
			}
		}
		switch {
		case errors.Is(err, errLostRace) && try < conflictTries:
			continue
		case errors.Is(err, ErrNotFound):
			return Outcome{}, cause
		case err != nil:
			return Outcome{}, errors.Join(cause, asElsewhere(err))
		}
		out := d.summary()
		if d.execution.ended {
			return out, nil
		}
		if err := d.rt.addParked(ctx, d.rt.recheckSoon(d.start.ID)); err != nil {
			return out, err
		}
		return out, fmt.Errorf("%w: %w", ErrStalled, cause)
	}
}

// recordStall commits that the execution is stalled, unless that is recorded already, and the contents of signals.
func (d *driver) recordStall(ctx context.Context, cause error) error {
	d.requeue(d.unacknowledged)
	d.unacknowledged = nil
	if err := d.loadCodeless(ctx); err != nil {
		return err
	}
	if !d.execution.ended && !d.execution.stalled {
		if err := d.learn(event{Kind: executionStalled, Failure: failureOf(cause)}); err != nil {
			return err
		}
	}
	if err := d.readInbox(); err != nil {
		return err
	}
	if !d.execution.ended && d.overdue() {
		if err := d.learn(event{Kind: executionTimedOut}); err != nil {
			return err
		}
	}
	if len(d.learned) == 0 {
		return nil
	}
	return d.commitRounds(ctx)
}

// loadCodeless brings the driver to the end of the stored rounds without running code. ErrNotFound means that no
// rounds exist.
func (d *driver) loadCodeless(ctx context.Context) error {
	all, status, err := d.rt.journal.loadWith(ctx, d.start.ID)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("orchestration %s: %w", d.start.ID, ErrNotFound)
	}
	if err == nil && (d.start.deliver || d.start.call == nil) {
		err = d.identify(all)
	}
	if err != nil {
		return err
	}
	d.codeless = true
	d.noteStatus(status)
	return d.loadLatest(all)
}

// recover continues a stalled execution after a successful replay. While an activity or orchestrator that it waits for
// is not registered, or its coroutines wait for each other, it stays stalled.
func (d *driver) recover() error {
	if err := d.execution.deadlock(); err != nil {
		return err
	}
	for _, t := range d.execution.tasks {
		if t.kind == activityTask && t.open() && d.rt.activities[t.name] == nil {
			return fmt.Errorf("orchestration %s calls activity %q: %w", d.start.ID, t.name, ErrUnknownActivity)
		}
		if t.kind == childTask && t.open() && d.rt.orchestrators[t.name] == nil {
			return fmt.Errorf("orchestration %s calls orchestrator %q: %w", d.start.ID, t.name, ErrUnknownOrchestrator)
		}
	}
	d.executor.recheckAll()
	d.executor.resend()
	return d.learn(event{Kind: executionRecovered})
}
