package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// decideEnd decides the end of the execution from that of its orchestrator function.
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

// fail ends the execution with an error of its code. What was canceled and could not clean up is for a person.
func (x *execution) fail(err error) {
	f := failureOf(err)
	recordNamed(f, err, x.errors)
	f.Permanent = f.Permanent || x.canceled != nil
	x.finish(event{Kind: executionFailed, Failure: f, Keeps: x.sawFailure && x.keepsResults(), Retrying: x.willRetry && !f.Permanent})
}

// keepsResults says that the attempt which follows may keep the results of this one: since it saw that something had failed, it
// has done nothing that can have taken them back.
func (x *execution) keepsResults() bool { return !x.actedAfterFailure }

// finish ends the execution, and with it what its fibers wait for.
func (x *execution) finish(e event) {
	x.decide(e)
	x.markEnded(x.decided[len(x.decided)-1])
}

// tooLarge says that the execution ended because it decided what cannot be stored.
func (e event) tooLarge() bool {
	return e.Kind == executionFailed && e.Failure != nil && e.Failure.Code == codeTooLarge
}

// markEnded takes note of the decision that ends the execution.
func (x *execution) markEnded(end event) {
	x.ended, x.continues, x.end = true, end.Kind == executionContinued, end
}

// noteResultSeen takes note that the code has been given the result of a call. What the code canceled by itself has not failed.
func (x *execution) noteResultSeen(t *task) {
	if t.err != nil && t.number > 0 && !t.canceled {
		x.sawFailure = true
	}
}

// noteAction takes note that the code does something that others can see.
func (x *execution) noteAction() { x.actedAfterFailure = x.actedAfterFailure || x.sawFailure }

// holdsFailedCall says that an error is, or wraps, that of a call which failed and was not canceled.
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

// timeOut ends an execution whose time is over.
func (x *execution) timeOut() {
	f := &Failure{Code: "TimedOut", Message: fmt.Sprintf("the orchestration did not end by %s", fromMicros(x.deadline).Format(time.RFC3339))}
	x.finish(event{Kind: executionFailed, Failure: f, Keeps: x.keepsResults(), Retrying: x.willRetry})
}

// applyBetweenAttempts takes in what comes after an attempt that another one follows: it is kept for that, or there is none after all.
// The end is decided again, so that it is what the last round holds.
func (x *execution) applyBetweenAttempts(e event) {
	switch e.Kind {
	case executionSuspended, executionResumed:
		x.applyCommand(e)
	case executionCanceled:
		x.stop(canceledFailure(e.Reason))
		return
	case executionTerminated:
		x.stop(terminatedFailure(e.Reason))
		return
	case executionGivenUp:
		x.giveUp(e.Failure)
		return
	}
	x.record(x.end)
}

// stop ends what has been stopped from outside.
func (x *execution) stop(f *Failure) {
	keeps := x.keepsResults()
	if x.ended {
		keeps = x.end.Keeps
	}
	x.finish(event{Kind: executionStopped, Failure: f, Keeps: keeps})
}

// giveUp ends what nobody tries again: an attempt that failed is the last one, and one that goes on has failed.
func (x *execution) giveUp(f *Failure) {
	if !x.ended {
		x.finish(event{Kind: executionFailed, Failure: f}) // nobody knows what its code has seen
		return
	}
	end := x.end
	end.Retrying = false
	x.record(end)
	x.markEnded(end)
}

// loadWithoutCode takes the execution over without its code: what it was told and how it ended, but not what it waits for.
func (x *execution) loadWithoutCode(g storedExecution) {
	started, _ := g.start()
	x.applyStart(started)
	for _, r := range g.rounds {
		for _, e := range r.Learned {
			x.received.record(e)
			switch e.Kind {
			case executionSuspended, executionResumed:
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
	x.actedAfterFailure = true // nobody knows whether it has
	for _, c := range summarize(x.id, g).Calls {
		if c.Kind == TaskCall && c.EndedAt.IsZero() {
			x.humanTasks = append(x.humanTasks, &task{kind: humanTask, number: c.origin.Task, name: c.Name, input: c.Input, began: c.origin.ScheduledAt})
		}
	}
}
