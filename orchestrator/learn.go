package orchestrator

import (
	"fmt"
	"maps"
)

// apply applies an event and runs the coroutines until they all wait.
func (x *execution) apply(e event) error {
	x.last = max(x.last, e.At)
	x.learnedCount++
	if e.Task == 0 {
		return x.applyCommon(e)
	}
	t := x.task(e.Task)
	if t == nil {
		return fmt.Errorf("%s of call %d, which nobody made: %w", e.Kind, e.Task, ErrCorrupt)
	}
	if e.Kind == callReturned {
		x.noteReturned(t)
		return nil
	}
	if t.done {
		return nil // a second result of one call changes nothing
	}
	x.setClock(e)
	if e.Failure != nil {
		x.failure, t.failure = e.Failure, e.Failure
	}
	switch e.Kind {
	case activityCompleted, childCompleted, timerFired, taskCompleted:
		x.complete(t, e.Payload, nil)
	case activityFailed, childFailed:
		t.attempts = e.Attempt
		x.complete(t, nil, t.failed(e.Failure, e.Attempt))
	case attemptFailed:
		x.stopRunning(t)
		if t.attempts, t.due = e.Attempt, e.Due; t.sent {
			x.recall(t)
		}
		x.waiting.noteDue(t)
	case activityProgressed:
		t.progress = e.Payload
	default:
		return unknownKind(e)
	}
	if t.done {
		x.turn()
	}
	return nil
}

func unknownKind(e event) error {
	return fmt.Errorf("an event of the kind %q, which this version does not know: %w", e.Kind, ErrNewerSchema)
}

// applyCommon applies an event that is not about a call.
func (x *execution) applyCommon(e event) error {
	if x.received.contains(e.signal().ID) || x.ended && !x.end.Retrying {
		return nil
	}
	x.setClock(e)
	x.received.record(e)
	if x.ended {
		x.applyBetweenAttempts(e)
		return nil
	}
	switch e.Kind {
	case executionStarted:
		x.applyStart(e)
		x.start(e.Payload)
	case eventRaised:
		if e.signal().Overtakes {
			x.overtakers.put(e)
		} else if x.applyRaised(e) {
			x.turn()
		}
		x.seeFollowing(e.signal().Stream, false, e.At)
	case overtakersReleased:
		x.seeFollowing(e.signal().Stream, true, e.At)
	case eventsReleased:
		return x.release(max(e.Attempt, 1))
	case activitiesSent:
		return x.markSent(e)
	case executionReleased:
		x.held = false
		x.turn()
	case executionSuspended, executionResumed:
		x.applyCommand(e)
		x.turn()
	case executionCanceled:
		x.noteElsewhere(e.target().Tasks, e.At)
		x.applyCommand(e)
		x.cancelAll(e.signal().Reason)
	case executionTimedOut:
		x.timeOut()
	case executionTerminated:
		x.stop(terminatedFailure(e.signal().Reason))
	case executionGivenUp:
		x.giveUp(e.Failure)
	case executionStalled:
		x.stalled, x.failure = true, e.Failure
	case executionRecovered:
		x.stalled = false
		x.turn()
	case executionTakenOver: // only the round counts, which rejects rounds of the previous node
	default:
		return unknownKind(e)
	}
	return nil
}

// applyCommand suspends or resumes the execution. Commands count in the order in which they were given: one that
// arrives after a later one does nothing. A cancellation resumes the execution, regardless of when it was given.
func (x *execution) applyCommand(e event) {
	given := e.signal().Accepted
	if given == 0 {
		given = e.At
	}
	switch {
	case e.Kind == executionCanceled && x.rules < rules3:
	case e.Kind == executionCanceled:
		x.commandedAt, x.suspended = max(x.commandedAt, given), false
	case given >= x.commandedAt:
		x.commandedAt, x.suspended = given, e.Kind == executionSuspended
	}
}

// markSent marks the activities that were sent to other processes.
func (x *execution) markSent(e event) error {
	for _, number := range e.target().Tasks {
		t := x.task(number)
		if t == nil {
			return fmt.Errorf("%s of call %d, which nobody made: %w", e.Kind, number, ErrCorrupt)
		}
		if !t.sent && t.open() {
			t.sent = true
			x.sentCount++
			x.stopRunning(t)
		}
	}
	return nil
}

// recall records that no other process runs the activity now.
func (x *execution) recall(t *task) {
	t.sent = false
	x.sentCount--
	x.recalled = append(x.recalled, t)
}

// applyStart sets the state with which the execution begins.
func (x *execution) applyStart(e event) {
	s := e.start()
	x.name, x.held, x.dropEarly, x.version, x.reference = e.Name, s.Held, s.Drop, s.Version, s.Reference
	x.first, x.willRetry, x.call = max(s.First, 1), s.WillRetry, s.Call
	x.errors, x.tenant, x.trace, x.rules = s.Errors, s.Tenant, s.Trace, s.Rules
	if s.Rules > 0 {
		x.publishes, x.signals = s.Publishes, s.Signals
	}
	if x.first == x.number && x.number > 1 {
		x.runBegan = e.At
	}
	if s.Timeout > 0 {
		x.deadline = e.clock().UnixMicro() + s.Timeout
	}
	if h := e.Inherited; h != nil {
		unread := x.overtakers.sort(h.Unread, &x.received, e.At)
		if x.rules >= rules3 && s.Base < x.number && e.attempt(x.number) > 1 {
			x.withheld = unread
		} else {
			x.unread.put(unread...)
		}
		x.suspended, x.commandedAt, x.outgoing = h.Suspended, h.Commanded, maps.Clone(h.Sent)
	}
	if s.Revived {
		x.commandedAt = e.clock().UnixMicro()
	}
}

// attempt returns the attempt number of the execution with this number, where e is its start. Executions from before
// attempts were numbered kept the results of all executions since Base.
func (e event) attempt(number int) int {
	if e.Attempt == 0 {
		return number - max(e.start().Base, 1) + 1
	}
	return e.Attempt
}

func (x *execution) setClock(e event) { x.clock = e.clock() }
