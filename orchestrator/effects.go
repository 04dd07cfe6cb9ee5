package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/tables"
)

// emit carries out the effects of a round outside of the orchestration: it sends messages and starts orchestrations.
// emit runs after the commit and before the next round. So at most the effects of the last round can be missing when
// an orchestration is resumed, and these are repeated. Repeating is harmless, because every receiver recognises
// duplicates. All data that emit needs is in the rounds.
func (d *driver) emit(ctx context.Context, r round) error {
	end := storedExecution{rounds: []round{r}}.end()
	if !r.hasEffects() && (end == nil || d.start.Parent == "" && !d.mayHaveOpenCalls()) {
		return nil
	}
	ctx, cancel := outage.Finish(ctx, storeTimeout)
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

// repeatEffects repeats the effects of the last loaded round, because the process that committed it may have died
// before them.
func (d *driver) repeatEffects(ctx context.Context) error {
	last := d.unconfirmed
	if d.unconfirmed = nil; last == nil {
		return nil
	}
	if d.tracer != nil {
		d.tracer.Resumed()
	}
	d.repeated = last.hasEffects()
	return d.emit(ctx, *last)
}

// noteEffects records in the status row that the effects of the last round were repeated, unless a later round implies
// it. Without the note every duplicate of a signal would repeat them, and effects that are events could be duplicates
// themselves: two orchestrations would answer each other without end. A failed write of the note costs one more
// repetition.
func (d *driver) noteEffects(ctx context.Context) {
	if !d.repeated || d.committed > 0 || d.status.ETag == "" {
		return
	}
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	row := d.status
	row.Properties = maps.Clone(row.Properties)
	row.Properties[columnEffects] = int64(d.version)
	err := d.rt.config.Tables.Apply(ctx, d.rt.config.Table, tables.Replace(row))
	if err != nil && !errors.Is(err, tables.ErrPrecondition) {
		d.log().WarnContext(ctx, "the effects of the last round were repeated, and may be repeated again", "error", err.Error())
	}
}

// mayConcern reports whether the event can be about a call of this kind. For a call that is not in memory the kind is
// unknown.
func (d *driver) mayConcern(e event, kind taskKind) bool {
	t := d.execution.task(e.Task)
	return t == nil || t.kind == kind
}

// emitOutward is the part of emit beyond the orchestration's own sub-orchestrations and human tasks.
func (d *driver) emitOutward(ctx context.Context, r round) error {
	var errs []error
	inOrder := true
	for _, e := range r.Decided {
		switch e.Kind {
		case childDetached:
			errs = append(errs, d.startDetached(ctx, e))
		case eventSent:
			if inOrder { // after a failure, the later events are sent again together with it
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

// mayHaveOpenCalls reports whether the execution has called sub-orchestrations or created human tasks, which may be
// open at its end.
func (d *driver) mayHaveOpenCalls() bool {
	return slices.ContainsFunc(d.rounds, func(r round) bool {
		return slices.ContainsFunc(r.Decided, func(e event) bool { return e.Kind == taskCreated || e.Kind == childScheduled })
	})
}

// repeatLastEffects repeats the effects of the orchestration's last round, because a process may have died before
// them. It has to run before the next execution begins: after that, no process can detect that they are missing.
func (r *Runtime) repeatLastEffects(ctx context.Context, id string, all []storedExecution, emit func(*driver, context.Context, round) error) error {
	latest, started := latestOf(all)
	d := newDriver(r, startFrom(id, started), r.orchestrators[started.Name])
	d.executor = newExecutor(ctx, r, d.start)
	defer d.executor.close()
	d.resetExecution(latest.number, max(started.start().Base, 1))
	d.rounds, d.notifiesParent = latest.rounds, true
	if d.traceLoaded(); d.tracer != nil {
		d.tracer.Resumed()
	}
	return emit(d, ctx, latest.rounds[len(latest.rounds)-1])
}

// startDetached starts a detached orchestration. If its id is taken, nothing is started.
func (d *driver) startDetached(ctx context.Context, e event) error {
	id := e.target().Child
	s := Start{ID: id, Orchestrator: e.Name, Input: e.Payload, CorrelationID: d.start.CorrelationID, TenantID: d.start.TenantID, Trace: d.ownTrace()}
	_, err := d.rt.Start(ctx, s)
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrExists) {
		d.log().WarnContext(ctx, "a detached orchestration was not started: its id is taken", "childId", id, "error", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("start of orchestration %s by %s: %w", id, d.start.ID, err)
	}
	return nil
}
