package orchestrator

import (
	"encoding/json"
	"time"
)

// taskKind says what a task waits for.
type taskKind int

const (
	activityTask  taskKind = iota // an activity, which a crew runs
	childTask                     // another orchestration, which a crew runs
	timerTask                     // a time
	eventTask                     // an external event
	coroutineTask                 // a coroutine of the same execution
	humanTask                     // a person
	conditionTask                 // a condition that other fibers make true
)

// call is the public name of a kind; "" for a fiber.
func (k taskKind) call() CallKind {
	switch k {
	case activityTask:
		return ActivityCall
	case childTask:
		return OrchestrationCall
	case timerTask:
		return TimerCall
	case eventTask:
		return EventCall
	case humanTask:
		return TaskCall
	}
	return ""
}

// completion is the event that says that a task of this kind succeeded, and failure that it failed for good.
func (k taskKind) completion() eventKind {
	switch k {
	case childTask:
		return childCompleted
	case timerTask:
		return timerFired
	case humanTask:
		return taskCompleted
	}
	return activityCompleted
}

func (k taskKind) failure() eventKind {
	if k == childTask {
		return childFailed
	}
	return activityFailed
}

// outside says that what a task of this kind waits for comes by itself, from outside of the program.
func (k taskKind) outside() bool { return k == eventTask || k == humanTask }

// task is something that an orchestrator can wait for.
type task struct {
	kind   taskKind
	number int // 0 for a fiber, which is no decision
	name   string
	input  json.RawMessage
	child  string // the id of the orchestration that a childTask waits for

	options  callOptions
	shielded bool  // from cancellation
	undoes   int   // the number of the call that this one takes back
	undone   bool  // another call takes it back
	began    int64 // microseconds
	attempts int   // that failed
	due      int64 // of a timer, or of the next attempt when one has failed; microseconds

	begun          bool            // a sub-orchestration that has rounds
	remote         bool            // a sub-orchestration that waits for a signal
	endedMeanwhile bool            // it has ended, while this process was still at it
	running        bool            // an activity that has not failed, and that no other process was given
	sent           bool            // an activity that another process runs
	foreign        bool            // others see to it, so this driver does not start it
	rival          bool            // of these: perhaps on behalf of the very message that this driver works for
	canceled       bool            // the orchestration does not want it any more
	canceledAt     int             // how many decisions there were then
	progress       json.RawMessage // what the last recorded heartbeat told
	waits          []wait          // of fibers, for it
	done           bool
	doneOrder      int  // in the order in which the execution's tasks were done
	awaited        bool // the orchestrator has looked at it
	output         json.RawMessage
	err            error
}

// retryAt says when the attempt that follows a failed one is due, or that there is none.
func (t *task) retryAt(failure *Failure, attempt int, now time.Time, key string) (due time.Time, again bool) {
	r := t.options.retry
	if failure.Permanent || attempt >= r.MaxAttempts {
		return time.Time{}, false
	}
	if r.Retryable != nil && !r.allows(t.failed(failure, attempt)) {
		return time.Time{}, false
	}
	due = now.Add(r.delay(attempt, key))
	if r.Timeout > 0 && due.After(fromMicros(t.began).Add(r.Timeout)) {
		return time.Time{}, false
	}
	return due, true
}

// failed is what Await returns for a call whose attempt failed for good.
func (t *task) failed(f *Failure, attempt int) error {
	if t.kind == childTask {
		return &OrchestrationError{Orchestrator: t.name, ID: t.child, Failure: *f, cause: t.options.errors.restore(f)}
	}
	return &ActivityError{Activity: t.name, Attempt: attempt, Failure: *f, cause: t.options.errors.restore(f)}
}

// open says that the call is made and has no result.
func (t *task) open() bool { return t.number > 0 && !t.done }
