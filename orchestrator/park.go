package orchestrator

import (
	"context"
	"slices"
	"time"
)

// park leaves the orchestration to a later Run, because ctx has ended, or because its next event is too far away.
func (d *driver) park(ctx context.Context, resumeAt time.Time) (Outcome, error) {
	for r := range d.executor.drain() {
		if err := d.learnResult(r); err != nil {
			return Outcome{}, err
		}
	}
	if len(d.learned) > 0 || len(d.execution.decided) > 0 {
		if err := d.commit(ctx); err != nil {
			return Outcome{}, asElsewhere(err)
		}
	}
	if d.pastOutcome != nil {
		return *d.pastOutcome, nil
	}
	if d.ended() {
		return d.summary(), nil
	}
	if !d.codeless && d.callErr == nil {
		if err := d.execution.deadlock(); err != nil {
			return Outcome{}, err
		}
	}
	out := d.outcomeAtRest()
	if err := d.checkRival(); err != nil {
		return out, err
	}
	if d.staleTimer && (resumeAt.IsZero() || resumeAt.After(d.rt.config.Now())) {
		resumeAt = d.earliest() // the stale message may have been the one that had to wake the orchestration
	}
	if d.callErr != nil {
		return Outcome{}, d.callErr
	}
	out.ResumeAt = resumeAt
	out.Woken = d.rt.config.Queues != nil && (resumeAt.IsZero() || resumeAt.After(d.rt.config.Now()))
	if !out.Woken {
		return out, nil // the caller of Run continues it
	}
	return out, d.wake(ctx, resumeAt)
}

// earliest returns the earliest due time of the execution's waits; zero without any.
func (d *driver) earliest() time.Time {
	at := d.execution.deadline
	for _, t := range d.execution.tasks {
		if t.open() && t.due != 0 && (at == 0 || t.due < at) {
			at = t.due
		}
	}
	if stream, until := d.execution.nextHeld(); stream != "" && (at == 0 || until.UnixMicro() < at) {
		at = until.UnixMicro()
	}
	if at == 0 {
		return time.Time{}
	}
	return fromMicros(at)
}

// outcomeAtRest returns the outcome of an execution that waits. After a signal it has calls only if one of them ended
// meanwhile, because listing a long history costs more than applying a signal.
func (d *driver) outcomeAtRest() Outcome {
	if !d.request.deliver || slices.ContainsFunc(d.rounds[max(0, len(d.rounds)-d.committed):], round.endsCall) {
		return d.summary()
	}
	out := summarize(d.start.ID, storedExecution{number: d.execution.number, rounds: []round{{Learned: d.rounds[0].Learned[:1]}}})
	out.Status, _ = d.execution.currentStatus()
	out.Earlier, out.Rounds = d.earlier, d.committed
	return out
}

// endsCall reports whether a call ended in the round.
func (r round) endsCall() bool {
	return slices.ContainsFunc(r.Learned, func(e event) bool {
		return e.Task > 0 && e.Kind != attemptFailed && e.Kind != activityProgressed || e.Kind == executionCanceled
	}) ||
		slices.ContainsFunc(r.Decided, func(e event) bool { return e.Kind == callCanceled })
}

func (d *driver) summary() Outcome {
	out := summarize(d.start.ID, storedExecution{number: d.execution.number, rounds: d.rounds})
	out.Earlier, out.Rounds = d.earlier, d.committed
	return out
}
