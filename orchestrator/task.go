package orchestrator

import (
	"encoding/json"
	"time"
)

// taskKind is the kind of thing that a task waits for.
type taskKind int

const (
	activityTask  taskKind = iota // an activity, which the executor runs
	childTask                     // a sub-orchestration, which the executor drives
	timerTask                     // a time
	eventTask                     // an external event
	coroutineTask                 // a coroutine of the same execution
	humanTask                     // a person
	conditionTask                 // a condition that other coroutines make true
)

// call returns the public name of the kind; "" for a kind that is not a call.
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

// completion returns the event by which a task of this kind succeeds, and failure the one by which it fails for good.
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

// outside reports whether the result of such a task comes from outside of the program, by a signal.
func (k taskKind) outside() bool { return k == eventTask || k == humanTask }

// task is something that an orchestrator can wait for.
type task struct {
	kind   taskKind
	number int // 0 for a coroutine, which is not a decision
	name   string
	input  json.RawMessage
	child  string     // the id of the orchestration that a childTask waits for
	joins  *task      // the open call of the same sub-orchestration that this call shares the outcome of; nil for none
	body   *coroutine // the coroutine of a coroutineTask

	options  *callOptions // shared, and never changed; nil except for calls
	shielded bool         // from cancellation
	undoes   int          // the number of the call that this one undoes
	undone   bool         // another call undoes it
	// elsewhere: another process may have run the activity when it was canceled, and its undo waits until it is known
	// to have returned.
	elsewhere, returned bool
	began               int64 // when the call was made, microseconds
	attempts            int   // how many attempts have failed
	due                 int64 // when a timer fires, or when the next attempt after a failure is due; microseconds

	dueNoted       int64           // the due time that the execution has noted among its possible waits; 0 for none
	begun          bool            // a sub-orchestration that has rounds
	remote         bool            // a sub-orchestration that reports its end by a signal
	endedMeanwhile bool            // a sub-orchestration that ended while this process was still driving it
	running        bool            // an activity without a failure, which this process or its successor runs
	sent           bool            // an activity that another process runs
	foreign        bool            // another driver is responsible for the call, so this one does not start it
	rival          bool            // that driver may be working on the same message as this one
	canceled       bool            // the orchestration no longer needs it
	canceledAt     int             // how many decisions there were then
	progress       json.RawMessage // progress in the last recorded heartbeat
	waits          []wait          // waits of coroutines for the task
	firstWait      [1]wait         // room for the first wait, which is the only one of most tasks
	alone          [1]*task        // the task as a list, for a coroutine that waits only for it
	done           bool
	doneOrder      int  // position in the order in which the execution's tasks were done
	awaited        bool // the orchestrator has waited for it
	output         json.RawMessage
	err            error
	failure        *Failure // the last learned failure
}

// retryAt returns when the next attempt after a failed one is due; again is false if none follows.
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

// failed returns the error that Await returns for a call that failed for good.
func (t *task) failed(f *Failure, attempt int) error {
	if t.kind == childTask {
		return &OrchestrationError{Orchestrator: t.name, ID: t.child, Failure: *f, cause: t.options.errors.restore(f)}
	}
	return &ActivityError{Activity: t.name, Attempt: attempt, Failure: *f, cause: t.options.errors.restore(f)}
}

// open reports whether the call is made and not done.
func (t *task) open() bool { return t.number > 0 && !t.done }
