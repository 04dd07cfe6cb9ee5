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
// All that it needs is in the rounds.
func (d *driver) emit(ctx context.Context, r round) error {
	end := storedExecution{rounds: []round{r}}.end()
	if !r.hasEffects() && (end == nil || d.start.Parent == "" && !d.mayHaveOpenCalls()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var errs []error
	for _, events := range [][]event{r.Decided, r.Learned} {
		for _, e := range events {
			switch e.Kind {
			case callCanceled:
				if d.mayConcern(e, childTask) {
					errs = append(errs, d.cancelChildren(ctx, e))
				}
			case executionCanceled:
				errs = append(errs, d.cancelChildren(ctx, e))
			case childFailed:
				errs = append(errs, d.giveUpChild(ctx, e))
			case activitiesSent:
				errs = append(errs, d.sendActivities(ctx, e))
			}
		}
	}
	errs = append(errs, d.showTasks(ctx, r))
	if end != nil {
		errs = append(errs, d.closeChildren(ctx, *end))
	}
	return errors.Join(append(errs, d.emitOutward(ctx, r))...)
}

// mayConcern says whether the event can be about a call of that kind: it is not known of one that is not in memory.
func (d *driver) mayConcern(e event, kind taskKind) bool {
	t := d.execution.task(e.Task)
	return t == nil || t.kind == kind
}

// emitOutward is the part of emit that reaches others than those which the orchestration has called.
func (d *driver) emitOutward(ctx context.Context, r round) error {
	var errs []error
	inOrder := true
	for _, e := range r.Decided {
		switch e.Kind {
		case childDetached:
			errs = append(errs, d.startDetached(ctx, e))
		case eventSent:
			if inOrder { // those behind one that failed come with it
				err := d.sendEvent(ctx, e)
				errs, inOrder = append(errs, err), err == nil
			}
		}
	}
	errs = append(errs, d.publishEvents(ctx, r))
	if end := (storedExecution{rounds: []round{r}}).end(); end != nil {
		errs = append(errs, d.notifyParent(ctx, *end))
	}
	return errors.Join(errs...)
}

func (r round) hasEffects() bool {
	for _, events := range [][]event{r.Decided, r.Learned} {
		for i := range events {
			switch events[i].Kind {
			case callCanceled, childDetached, childFailed, eventPublished, eventSent, executionCanceled, activitiesSent, taskCreated, taskEscalated:
				return true
			}
		}
	}
	return false
}

// mayHaveOpenCalls says that the execution has called sub-orchestrations, or asked people for something, that may go on at its end.
func (d *driver) mayHaveOpenCalls() bool {
	return slices.ContainsFunc(d.rounds, func(r round) bool {
		return slices.ContainsFunc(r.Decided, func(e event) bool { return e.Kind == taskCreated || e.Kind == childScheduled })
	})
}

// repeatLastEffects has the effects of the last round of an orchestration, which a process may have died before: whatever begins
// after it hides from others that they are missing.
func (r *Runtime) repeatLastEffects(ctx context.Context, id string, all []storedExecution, emit func(*driver, context.Context, round) error) error {
	latest, started := latestOf(all)
	d := newDriver(r, startFrom(id, started), r.orchestrators[started.Name])
	d.executor = newExecutor(ctx, r, d.start)
	defer d.executor.close()
	d.resetExecution(latest.number, max(started.Base, 1))
	d.rounds, d.notifiesParent = latest.rounds, true
	return emit(d, ctx, latest.rounds[len(latest.rounds)-1])
}

// startDetached starts an orchestration that nobody waits for. One that has the id already is left alone.
func (d *driver) startDetached(ctx context.Context, e event) error {
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
