package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// emit does what a round decided that has an effect outside of the orchestration: messages that it sends, orchestrations
// that it starts. That comes after the commit and before the next round, so whoever resumes knows that at most the
// effects of the last round are missing, and repeats those. Repeating is harmless: every receiver knows what it has had.
func (d *driver) emit(ctx context.Context, r round) error {
	if !r.hasEffects() && !d.endsTasks(r) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var errs []error
	for _, events := range [][]event{r.Decided, r.Learned} {
		for _, e := range events {
			switch e.Kind {
			case callCanceled, executionCanceled:
				errs = append(errs, d.cancelChildren(ctx, e))
			case childDetached:
				errs = append(errs, d.launch(ctx, e))
			case activitiesSent:
				errs = append(errs, d.spread(ctx, e))
			}
		}
	}
	return errors.Join(append(errs, d.showTasks(ctx, r), d.relay(ctx, r))...)
}

func (r round) hasEffects() bool {
	for _, events := range [][]event{r.Decided, r.Learned} {
		for i := range events {
			switch events[i].Kind {
			case callCanceled, childDetached, eventPublished, executionCanceled, activitiesSent, taskCreated, taskEscalated:
				return true
			}
		}
	}
	return false
}

// endsTasks says that the round ends an execution that has asked people for something.
func (d *driver) endsTasks(r round) bool {
	return generation{rounds: []round{r}}.end() != nil && slices.ContainsFunc(d.rounds, func(r round) bool {
		return slices.ContainsFunc(r.Decided, func(e event) bool { return e.Kind == taskCreated })
	})
}

// cancelChildren cancels the sub-orchestrations that the event has interrupted the wait for. It looks at the rounds: an
// execution that has ended has no calls in memory. Without queues nothing can be told to them: they are left where they
// are.
func (d *driver) cancelChildren(ctx context.Context, e event) error {
	if d.rt.config.Queues == nil {
		return nil
	}
	var errs []error
	for _, c := range d.summary().Calls {
		if c.Kind != OrchestrationCall || !c.canceledAt(e.At) {
			continue
		}
		p := Payload{Command: commandCancel, Reason: "its caller " + d.start.ID + " canceled it",
			Caller: &caller{ID: d.start.ID, CorrelationID: d.start.CorrelationID, Orchestrator: c.Name}}
		errs = append(errs, d.rt.signal(ctx, c.Child, p, notWanted(c.Child)))
	}
	return errors.Join(errs...)
}

// canceledAt says that the wait for the call was interrupted then.
func (c Call) canceledAt(micros int64) bool {
	return c.Failure != nil && c.Failure.Code == codeCanceled && c.EndedAt.Equal(fromMicros(micros))
}

// notWanted is the id of the signal by which an orchestration cancels one that it has called.
func notWanted(child string) string { return "cancel:" + child }

// launch starts an orchestration that nobody waits for. One that has the id already is left alone.
func (d *driver) launch(ctx context.Context, e event) error {
	s := Start{ID: e.Child, Orchestrator: e.Name, Input: e.Payload, CorrelationID: d.start.CorrelationID}
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
