package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// decideEnd decides the end of the execution, from the result of its orchestrator's function.
func (x *execution) decideEnd(root *task) {
	again, continues := errors.AsType[continueAsNew](root.err)
	switch {
	case root.err != nil && x.canceled != nil && !holdsFailedCall(root.err):
		x.finish(event{Kind: executionStopped, Failure: canceledFailure(*x.canceled), Keeps: x.keepsResults()})
	case continues:
		input, _ := again.input.(json.RawMessage)
		x.finish(event{Kind: executionContinued, Payload: input, Inherited: x.inheritance()})
	case root.err != nil:
		x.fail(root.err)
	default:
		x.finish(event{Kind: executionCompleted, Payload: root.output})
	}
}

// fail ends the execution with an error of its code. After a cancellation the error is permanent: the clean-up has
// failed, and an operator has to check it.
func (x *execution) fail(err error) {
	f := failureOf(err)
	recordNamed(f, err, x.errors)
	f.Permanent = f.Permanent || x.canceled != nil
	x.finish(event{Kind: executionFailed, Failure: f, Keeps: x.keepsAfter(err), Retrying: x.willRetry && !f.Permanent})
}

// keepsResults reports whether the next attempt may keep the results of this one. The code has done nothing since it
// saw a failure, so it cannot have undone them.
func (x *execution) keepsResults() bool { return !x.actedAfterFailure }

// finish ends the execution by this decision.
func (x *execution) finish(e event) {
	x.decide(e)
	x.markEnded(x.decided[len(x.decided)-1])
}

// tooLarge reports whether the execution ended because of an event or decision too large for storage.
func (e event) tooLarge() bool {
	return e.Kind == executionFailed && e.Failure != nil && e.Failure.Code == codeTooLarge
}

// markEnded records the decision that ends the execution.
func (x *execution) markEnded(end event) {
	x.ended, x.continues, x.end = true, end.Kind == executionContinued, end
}

// noteResultSeen records whether the code was given the failure of a call. A call that the code canceled itself has
// not failed.
func (x *execution) noteResultSeen(t *task) {
	if t.err != nil && t.number > 0 && !t.canceled {
		x.sawFailure = true
	}
}

// noteAction records an action of the code with outside effects, which counts once the code has seen a failure.
func (x *execution) noteAction() { x.actedAfterFailure = x.actedAfterFailure || x.sawFailure }

// holdsFailedCall reports whether an error is, or wraps, the error of a call that failed and was not canceled.
func holdsFailedCall(err error) bool {
	return walk(err, func(e error) bool {
		switch e := e.(type) {
		case *ActivityError:
			return e.Failure.Code != codeCanceled
		case *OrchestrationError:
			return e.Failure.Code != codeCanceled
		case *panicError:
			return true
		}
		return false
	})
}

// timeOut ends an execution after its timeout.
func (x *execution) timeOut() {
	f := &Failure{Code: "TimedOut", Message: fmt.Sprintf("the orchestration did not end by %s", fromMicros(x.deadline).Format(time.RFC3339))}
	x.finish(event{Kind: executionFailed, Failure: f, Keeps: x.keepsResults(), Retrying: x.willRetry})
}

// applyBetweenAttempts applies an event that arrives between a failed attempt and the next one. The event is kept for
// the next attempt, or cancels it. The end is decided again, so that the last round always holds it.
func (x *execution) applyBetweenAttempts(e event) {
	switch e.Kind {
	case executionSuspended, executionResumed:
		x.applyCommand(e)
	case executionCanceled:
		x.stop(canceledFailure(e.signal().Reason))
		return
	case executionTerminated:
		x.stop(terminatedFailure(e.signal().Reason))
		return
	case executionGivenUp:
		x.giveUp(e.Failure)
		return
	}
	x.record(x.end)
}

// stop ends an execution that was canceled or terminated from outside.
func (x *execution) stop(f *Failure) {
	keeps := x.keepsResults()
	if x.ended {
		keeps = x.end.Keeps
	}
	x.finish(event{Kind: executionStopped, Failure: f, Keeps: keeps})
}

// giveUp makes a failure final: a failed attempt becomes the last one, and a running one fails.
func (x *execution) giveUp(f *Failure) {
	if !x.ended {
		x.finish(event{Kind: executionFailed, Failure: f}) // Keeps is not set, because it is unknown whether the code has seen a failure
		return
	}
	end := x.end
	end.Retrying = false
	x.record(end)
	x.markEnded(end)
}

// loadWithoutCode loads the execution from its rounds without running its code. It then knows which signals were
// applied and how the execution ended, but not the waits of the code.
func (x *execution) loadWithoutCode(g storedExecution) {
	started, _ := g.start()
	x.applyStart(started)
	for _, r := range g.rounds {
		for _, e := range r.Learned {
			x.received.record(e)
			switch e.Kind {
			case executionSuspended, executionResumed, executionCanceled:
				x.applyCommand(e)
			case executionStalled:
				x.stalled, x.failure = true, e.Failure
			case executionRecovered:
				x.stalled = false
			case executionReleased:
				x.held = false
			}
			x.last = max(x.last, e.At)
		}
		for _, e := range r.Decided {
			x.last = max(x.last, e.At)
		}
	}
	x.clock = fromMicros(x.last)
	if end := g.end(); end != nil {
		x.markEnded(*end)
		return
	}
	x.actedAfterFailure = true // unknown without the code, so the safe assumption
	for _, c := range summarize(x.id, g).Calls {
		if c.Kind == TaskCall && c.EndedAt.IsZero() {
			x.humanTasks = append(x.humanTasks, &task{kind: humanTask, number: c.origin.Task, name: c.Name, input: c.Input, began: c.origin.ScheduledAt})
		}
	}
}
