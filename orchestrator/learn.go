package orchestrator

import (
	"fmt"
	"time"
)

// apply takes one event in and lets the fibers run on as far as the event allows.
func (x *execution) apply(e event) error {
	x.last = max(x.last, e.At)
	if e.Task == 0 {
		return x.applyCommon(e)
	}
	t := x.task(e.Task)
	if t == nil {
		return fmt.Errorf("%s of call %d, which nobody made: %w", e.Kind, e.Task, ErrCorrupt)
	}
	if t.done {
		return nil // a second result of one call changes nothing
	}
	x.learned(e)
	if e.Failure != nil {
		x.failure = e.Failure
	}
	switch e.Kind {
	case activityCompleted, childCompleted, timerFired, taskCompleted:
		x.complete(t, e.Payload, nil)
	case activityFailed, childFailed:
		t.attempts = e.Attempt
		x.complete(t, nil, t.failed(e.Failure, e.Attempt))
	case attemptFailed:
		x.idle(t)
		if t.attempts, t.due = e.Attempt, e.Due; t.sent {
			t.sent = false
			x.sent--
		}
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

// applyCommon takes in what is not about a call.
func (x *execution) applyCommon(e event) error {
	if x.knows(e.Signal) || x.ended {
		return nil
	}
	x.learned(e)
	if e.Signal != "" && e.Kind != executionStarted { // whose request id is no signal's
		x.signals = append(x.signals, e.Signal)
	}
	switch e.Kind {
	case executionStarted:
		x.started(e)
	case eventRaised:
		if x.raised(e) {
			x.turn()
		}
	case activitiesSent:
		return x.handedOut(e)
	case executionReleased:
		x.held = false
		x.turn()
	case executionSuspended:
		x.suspended = true
	case executionCanceled:
		x.cancelAll(e.Reason)
	case executionResumed:
		x.suspended = false
		x.turn()
	case executionTimedOut:
		x.end(event{Kind: executionFailed, Failure: &Failure{Code: "TimedOut",
			Message: fmt.Sprintf("the orchestration did not end by %s", fromMicros(x.deadline).Format(time.RFC3339))}})
	case executionTerminated:
		x.end(event{Kind: executionStopped, Failure: terminatedFailure(e.Reason)})
	default:
		return unknownKind(e)
	}
	return nil
}

// handedOut takes note of the activities that other processes run.
func (x *execution) handedOut(e event) error {
	for _, number := range e.Tasks {
		t := x.task(number)
		if t == nil {
			return fmt.Errorf("%s of call %d, which nobody made: %w", e.Kind, number, ErrCorrupt)
		}
		if !t.sent && t.open() {
			t.sent = true
			x.sent++
			x.idle(t)
		}
	}
	return nil
}

func (x *execution) started(e event) {
	x.held, x.drop, x.version, x.reference = e.Held, e.Drop, e.Version, e.Reference
	x.first = max(e.First, 1)
	if e.Timeout > 0 {
		x.deadline = e.At + e.Timeout
	}
	if h := e.Inherited; h != nil {
		x.unread = append(x.unread, h.Unread...)
		x.signals = append(x.signals, h.Signals...)
	}
	x.start(e.Payload)
}

func (x *execution) learned(e event) { x.clock = fromMicros(e.At) }
