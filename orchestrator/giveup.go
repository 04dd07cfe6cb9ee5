package orchestrator

import (
	"context"
	"errors"
	"fmt"
)

// endWithoutCode ends an execution by an event from outside, immediately and without running its code. A driver that
// is running it finds out at its next commit. An execution that has ended meanwhile is left as it is.
func (r *Runtime) endWithoutCode(ctx context.Context, id string, latest storedExecution, e event) error {
	d := newDriver(r, Start{ID: id, deliver: true}, nil)
	d.executor = newExecutor(ctx, r, d.start)
	defer d.executor.close()
	if err := d.loadCodeless(ctx); err != nil {
		return err
	}
	if d.execution.ended && !d.execution.end.Retrying || d.execution.number != latest.number {
		return nil
	}
	if err := d.repeatEffects(ctx); err != nil {
		return err
	}
	if err := d.learn(e); err != nil {
		return err
	}
	return d.commitRounds(ctx)
}

// GiveUp ends an orchestration as Failed that was started with Start.WillRetry and is not started again. It is
// Retrying, or no process drives it because the process died in each attempt. cause becomes its error, unless it has
// one already. GiveUp does nothing to an orchestration that has ended, is stalled or is suspended. ErrConflict means
// that the id belongs to another run.
func (r *Runtime) GiveUp(ctx context.Context, id, correlationID string, cause error) error {
	for try := 0; ; try++ {
		all, err := r.loadKnown(ctx, id)
		if err != nil {
			return err
		}
		latest, started := latestOf(all)
		out := summarize(id, latest)
		if at := started.start().CorrelationID; at != correlationID {
			return fmt.Errorf("orchestration %s runs for correlation id %s: %w", id, at, ErrConflict)
		}
		if out.Ended() || out.Status == Stalled || out.Status == Suspended {
			return nil
		}
		err = r.endWithoutCode(ctx, id, latest, event{Kind: executionGivenUp, Failure: failureOf(cause)})
		if errors.Is(err, errLostRace) && try < conflictTries {
			continue
		}
		return asElsewhere(err)
	}
}
