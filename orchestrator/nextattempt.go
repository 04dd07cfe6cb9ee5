package orchestrator

import (
	"bytes"
	"context"
	"fmt"
	"slices"
)

// nextAttempt returns the start event of the attempt that follows an ended one. The end of that one records whether
// its results are kept.
func nextAttempt(before storedExecution, started event) event {
	next := startDetails{Base: before.number + 1, First: max(started.start().First, 1)}
	e := event{Attempt: started.attempt(before.number) + 1, Start: &next, Payload: started.Payload, Inherited: before.forNextAttempt()}
	end := before.end()
	switch {
	case end != nil && end.Keeps:
		next.Base = max(started.start().Base, 1)
	case e.Inherited != nil:
		e.Inherited.Sent = nil // without results, all sent events are new, and so are their streams
	}
	if next.Revived = end != nil && !end.Retrying; next.Revived && e.Inherited != nil {
		e.Inherited.Suspended = false // a retry of an ended orchestration has to run
	}
	return e
}

// priorResults returns the results of previous attempts that the execution which starts with e may reuse: those from
// Base on.
func (e event) priorResults(id string, before []storedExecution) priorResults {
	base := max(e.start().Base, 1)
	return newPriorResults(id, slices.DeleteFunc(slices.Clone(before), func(g storedExecution) bool { return g.number < base }))
}

// startNextAttempt commits the start of the attempt that follows the latest one, which has ended.
func (d *driver) startNextAttempt(ctx context.Context, all []storedExecution, next event) error {
	if err := d.loadLatest(all); err != nil {
		return err
	}
	if err := d.repeatEffects(ctx); err != nil {
		return err
	}
	d.requiredETag = d.statusETag // with this ETag, no process has added a round to the previous attempt
	before := d.summary()
	before.Earlier = nil
	d.earlier = append(d.earlier, before)
	d.prior = next.priorResults(d.start.ID, all)
	return d.begin(ctx, before.Execution+1, next)
}

// retryOverdue reports whether the sweeper has to make the next attempt, because the message that causes it is lost.
// The attempts of a sub-orchestration are made by its caller.
func (d *driver) retryOverdue(end event) bool {
	if !end.Retrying || d.start.Parent != "" || d.rt.config.Now().Sub(fromMicros(end.At)) < d.rt.config.LostAfter {
		return false
	}
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	return slices.ContainsFunc(d.inbox, func(v *delivery) bool { return v.signal.Payload.Lost })
}

// resumeForCaller resumes a sub-orchestration for one attempt at a call of its caller. It drives the execution that
// was started for this attempt, uses the result of one that completed for an earlier attempt, or starts the next
// execution.
func (d *driver) resumeForCaller(ctx context.Context, all []storedExecution) error {
	latest, started := latestOf(all)
	if started.Name != d.start.Orchestrator || started.start().Parent != d.start.Parent || d.start.Parent == "" {
		return fmt.Errorf("orchestration %s was started by %s for %q: %w", d.start.ID, started.Name, started.start().Parent, ErrConflict)
	}
	first, _ := all[0].start()
	d.createdAt = createdOf(first)
	own, known := *d.start.call, callRef{}
	if call := started.start().Call; call != nil {
		known = *call
	}
	usable := known.Execution >= own.Since
	continued := started.start().First != latest.firstAttempt() // so its input is not the call's
	sameInput := continued || started.Blob != "" || bytes.Equal(started.Payload, compact(d.start.Input))
	end := latest.end()
	early := started.start().Call == nil && (end == nil || end.Kind == executionCompleted || started.attempt(latest.number) >= own.Attempt)
	switch {
	case early, known.same(own) && known.Attempt == own.Attempt: // early starts did not record their call
		d.notifiesParent = end == nil // another process drove it, and the caller may be parked
		return d.loadLatest(all)
	case own.before(known):
		return fmt.Errorf("orchestration %s runs for a later call: %w", d.start.ID, errLostRace)
	case usable && !sameInput && (end == nil || end.Kind == executionCompleted):
		return fmt.Errorf("orchestration %s has another input: %w", d.start.ID, ErrConflict)
	case latest.active() && (end == nil || !end.Retrying):
		d.waitsForEnd, d.codeless = true, true // it still runs for an earlier call; the caller is notified when it ends
		return d.loadLatest(all)
	case usable && end.Kind == executionCompleted:
		return d.loadLatest(all)
	}
	if usable && sameInput {
		return d.startNextAttempt(ctx, all, nextAttempt(latest, started))
	}
	next := freshExecution(d.start, latest, "").event
	details := next.start()
	details.First = max(started.start().First, 1) // the orchestration was not started from outside again
	next.Start = &details
	return d.startNextAttempt(ctx, all, next)
}

// takeOverPrior gives the execution the side effects of the previous attempt, and records which sub-orchestrations
// were undone.
func (x *execution) takeOverPrior(m priorResults, earlier []Outcome) {
	x.priorSideEffects = m.sideEffects
	x.undoneSince = nil
	for _, o := range earlier {
		for _, c := range o.Calls {
			if c.Undone && c.Child != "" {
				if x.undoneSince == nil {
					x.undoneSince = map[string]int{}
				}
				x.undoneSince[c.Child] = o.Execution + 1
			}
		}
	}
}
