package orchestrator

import (
	"context"
	"fmt"
	"slices"
)

// nextAttempt is the start of the attempt that follows one that has ended. What that leaves to it is said by its end.
func nextAttempt(before storedExecution, started event) event {
	e := event{Base: before.number + 1, First: max(started.First, 1), Attempt: started.attempt(before.number) + 1,
		Payload: started.Payload, Inherited: before.forNextAttempt()}
	end := before.end()
	if end != nil && end.Keeps {
		e.Base = max(started.Base, 1)
	}
	if e.Revived = end != nil && !end.Retrying; e.Revived && e.Inherited != nil {
		e.Inherited.Suspended = false // who revives what has ended wants it to run
	}
	return e
}

// priorResults is what the execution, of which e is the start, keeps of the attempt before it.
func (e event) priorResults(id string, before storedExecution) priorResults {
	if e.Base > before.number {
		return priorResults{}
	}
	return newPriorResults(id, before)
}

// startNextAttempt makes the attempt that follows the latest, which has ended.
func (d *driver) startNextAttempt(ctx context.Context, all []storedExecution, next event) error {
	if err := d.loadLatest(all); err != nil {
		return err
	}
	if err := d.repeatEffects(ctx); err != nil {
		return err
	}
	d.requiredETag = d.statusETag // while it is that, nothing has been added to the attempt before
	before := d.summary()
	before.Earlier = nil
	d.earlier = append(d.earlier, before)
	d.prior = next.priorResults(d.start.ID, all[len(all)-1])
	return d.begin(ctx, before.Execution+1, next)
}

// retryOverdue says that the sweeper sees to the next attempt, because the message that was to bring it is lost. That at a
// sub-orchestration is its caller's to make.
func (d *driver) retryOverdue(end event) bool {
	if !end.Retrying || d.start.Parent != "" || d.rt.config.Now().Sub(fromMicros(end.At)) < d.rt.config.LostAfter {
		return false
	}
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	return slices.ContainsFunc(d.inbox, func(v *delivery) bool { return v.signal.Payload.Lost })
}

// resumeForCaller takes over a sub-orchestration for an attempt at a call of its caller: it drives the execution that began
// for that, takes the result of one that completed for an earlier one, or begins the next.
func (d *driver) resumeForCaller(ctx context.Context, all []storedExecution) error {
	latest, started := latestOf(all)
	if started.Name != d.start.Orchestrator || started.Parent != d.start.Parent || started.Parent == "" {
		return fmt.Errorf("orchestration %s was started by %s for %q: %w", d.start.ID, started.Name, started.Parent, ErrConflict)
	}
	first, _ := all[0].start()
	d.createdAt = createdOf(first)
	own, known := *d.start.call, callRef{}
	if started.Call != nil {
		known = *started.Call
	}
	usable := known.Execution >= own.Since
	end := latest.end()
	switch {
	case known.same(own) && known.Attempt == own.Attempt:
		d.notifiesParent = end == nil // somebody else had it, and its caller may be parked
		return d.loadLatest(all)
	case own.before(known):
		return fmt.Errorf("orchestration %s runs for a later call: %w", d.start.ID, errLostRace)
	case latest.active() && (end == nil || !end.Retrying):
		d.waitsForEnd, d.codeless = true, true // its caller has let it go, and hears of its end
		return d.loadLatest(all)
	case usable && end.Kind == executionCompleted:
		return d.loadLatest(all)
	}
	if usable {
		return d.startNextAttempt(ctx, all, nextAttempt(latest, started))
	}
	next := freshExecution(d.start, latest, "").event
	next.First = max(started.First, 1) // it is still the same orchestration
	return d.startNextAttempt(ctx, all, next)
}

// takeOverPrior takes note of what the attempts before leave to the execution.
func (x *execution) takeOverPrior(m priorResults, earlier []Outcome) {
	x.priorSideEffects = m.sideEffects
	x.undoneSince = map[string]int{}
	for _, o := range earlier {
		for _, c := range o.Calls {
			if c.Undone && c.Child != "" {
				x.undoneSince[c.Child] = o.Execution + 1
			}
		}
	}
}
