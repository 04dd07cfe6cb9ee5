package orchestrator

import (
	"context"
	"errors"
	"fmt"
)

// emit does what a round decided that has an effect outside of the orchestration: messages that it sends, orchestrations
// that it starts. That comes after the commit and before the next round, so whoever resumes knows that at most the
// effects of the last round are missing, and repeats those. Repeating is harmless: every receiver knows what it has had.
func (d *driver) emit(ctx context.Context, r round) error {
	if !r.hasEffects() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var errs []error
	for _, e := range r.Decided {
		switch e.Kind {
		case callCanceled:
			if t := d.execution.task(e.Task); t != nil {
				errs = append(errs, d.cancelChild(ctx, t))
			}
		case childDetached:
			errs = append(errs, d.launch(ctx, e))
		}
	}
	for _, e := range r.Learned {
		switch e.Kind {
		case executionCanceled:
			for _, t := range d.execution.tasks {
				errs = append(errs, d.cancelChild(ctx, t))
			}
		case activitiesSent:
			errs = append(errs, d.spread(ctx, e))
		}
	}
	return errors.Join(append(errs, d.relay(ctx, r))...)
}

func (r round) hasEffects() bool {
	for _, events := range [][]event{r.Decided, r.Learned} {
		for i := range events {
			switch events[i].Kind {
			case callCanceled, childDetached, eventPublished, executionCanceled, activitiesSent:
				return true
			}
		}
	}
	return false
}

// cancelChild cancels a sub-orchestration that the orchestration does not want any more. Without queues nothing can be
// told to it: it is left where it is.
func (d *driver) cancelChild(ctx context.Context, t *task) error {
	if t.kind != childTask || !t.canceled || d.rt.config.Queues == nil {
		return nil
	}
	return d.rt.signal(ctx, t.child, Payload{Command: commandCancel, Reason: "its caller " + d.start.ID + " canceled it",
		Caller: &caller{ID: d.start.ID, CorrelationID: d.start.CorrelationID, Orchestrator: t.name}}, "cancel:"+t.child)
}

// launch starts an orchestration that nobody waits for. One that has the id already is left alone.
func (d *driver) launch(ctx context.Context, e event) error {
	s := Start{ID: e.Child, Orchestrator: e.Name, Input: d.execution.launches[e.Child], CorrelationID: d.start.CorrelationID}
	_, err := d.rt.Start(ctx, s)
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrExists) {
		d.rt.config.Log.Warn("an orchestration that was to be started is another's", "orchestration", d.start.ID, "id", e.Child, "reason", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("start of orchestration %s by %s: %w", e.Child, d.start.ID, err)
	}
	return nil
}
