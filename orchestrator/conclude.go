package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// conclude tells those who have to know what a driver that a signal woke has reached.
func (r *Runtime) conclude(ctx context.Context, d *driver, s Signal) (Outcome, error) {
	out := d.outcome
	if d.err != nil {
		return out, d.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if !out.Ended() && !out.Woken {
		// Time ran out. Without progress the signal is delivered again, so that it is counted.
		if out.Rounds == 0 {
			return out, fmt.Errorf("orchestration %s: the time ran out before anything was done: %w", out.ID, context.DeadlineExceeded)
		}
		parkings := []parking{r.lookAfter(out.ID)} // should the signal be lost
		if at := d.earliest(); !at.IsZero() {
			parkings = append(parkings, parking{id: out.ID, due: at, since: at})
		}
		if err := r.remember(ctx, parkings...); err != nil {
			return out, err
		}
		return out, r.send(ctx, Signal{SignalID: uuid.NewString(), InstanceID: out.ID, Type: InternalContinue}, 0)
	}
	if !out.Ended() {
		return out, nil
	}
	if err := r.stopChildren(ctx, out); err != nil {
		return out, err
	}
	switch {
	case s.SignalID == fromCaller(out.ID), s.SignalID == notWanted(out.ID) && out.Rounds == 0:
		return out, nil // who called it knows; telling it again would make it cancel again
	case out.Parent != "":
		return out, r.send(ctx, Signal{SignalID: "end:" + out.ID, InstanceID: out.Parent, Type: SubWorkflowCompleted}, 0)
	case r.config.Ended != nil:
		return out, r.config.Ended(ctx, out)
	default:
		return out, nil
	}
}

// stopChildren terminates what a terminated orchestration waited for. It is told again each time that the end is looked
// up; a child that has ended takes no notice.
func (r *Runtime) stopChildren(ctx context.Context, out Outcome) error {
	if out.Status != Terminated || r.config.Queues == nil {
		return nil
	}
	var errs []error
	for _, c := range out.Calls {
		if c.Kind == OrchestrationCall && c.EndedAt.IsZero() {
			errs = append(errs, r.signal(ctx, c.Child, Payload{Command: commandTerminate, Reason: "its caller " + out.ID + " was terminated",
				Caller: &caller{ID: out.ID, CorrelationID: out.CorrelationID, Orchestrator: c.Name}}, fromCaller(c.Child)))
		}
	}
	return errors.Join(errs...)
}

// fromCaller is the id of the signal by which a terminated orchestration terminates one that it has called.
func fromCaller(child string) string { return "terminate:" + child }
