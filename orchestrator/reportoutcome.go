package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/outage"
)

// reportOutcome calls the hooks of the configuration (Stalled, Ended) for the outcome of a driver that a signal woke.
func (r *Runtime) reportOutcome(ctx context.Context, d *driver) (Outcome, error) {
	out := d.outcome
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	switch {
	case errors.Is(d.err, ErrStalled) && r.config.Stalled != nil:
		return out, r.config.Stalled(ctx, out)
	case errors.Is(d.err, ErrStalled):
		return out, nil
	case d.err != nil:
		return out, d.err
	case !out.Ended() && out.Status != Retrying:
		return out, r.continueLater(ctx, d)
	case r.config.Ended == nil || out.Parent != "" || out.Status == Retrying && d.lateSignal:
		return out, nil
	default:
		return out, r.config.Ended(ctx, out)
	}
}

// continueLater ensures that an orchestration is continued after its driver timed out. If the driver made no progress,
// it returns an error instead: the signal is redelivered, so that its attempts are counted.
func (r *Runtime) continueLater(ctx context.Context, d *driver) error {
	out := d.outcome
	if out.Woken {
		return nil
	}
	if out.Rounds == 0 {
		return fmt.Errorf("orchestration %s: the time ran out before anything was done: %w", out.ID, context.DeadlineExceeded)
	}
	entries := []parkedEntry{r.recheckLater(out.ID)} // in case the signal is lost
	if at := d.earliest(); !at.IsZero() {
		entries = append(entries, parkedEntry{id: out.ID, due: at, since: at})
	}
	if err := r.addParked(ctx, entries...); err != nil {
		return err
	}
	return r.sendOnce(ctx, Signal{SignalID: uuid.NewString(), InstanceID: out.ID, Type: InternalContinue}, 0)
}
