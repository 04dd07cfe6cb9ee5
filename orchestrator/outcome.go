package orchestrator

import (
	"encoding/json"
	"time"
)

// Status is the state of an orchestration, with the names of Durable Functions where it has them.
type Status string

// These are the states. An orchestration that continues as new is Running.
const (
	Pending    Status = "Pending" // started, but not run by a process yet
	Running    Status = "Running"
	Suspended  Status = "Suspended"
	Retrying   Status = "Retrying" // an attempt failed and another follows, for which events and commands are kept
	Stalled    Status = "Stalled"  // the code cannot continue; when it is fixed, the orchestration continues by itself
	Completed  Status = "Completed"
	Failed     Status = "Failed"
	Terminated Status = "Terminated"
	Canceled   Status = "Canceled"
)

// Ended reports whether the state is final, so that nothing follows by itself.
func (s Status) Ended() bool {
	return s == Completed || s == Failed || s == Terminated || s == Canceled
}

// Outcome is the state of the latest execution of an orchestration after Run, with its calls.
type Outcome struct {
	ID            string
	Orchestrator  string
	CorrelationID string
	// TenantID is the tenant that the execution belongs to, "" for the platform.
	TenantID  string
	Execution int
	// Input is the input of the execution, Carry is Start.Carry.
	Input json.RawMessage
	Carry []byte
	// Version is the version of the orchestrator's code. Reference is the business reference, or nil.
	Version   string
	Reference *Reference
	// Parent is the id of the caller, "" for none.
	Parent string
	Status Status
	// Output is the result of a completed execution, Failure the error of a failed one.
	Output  json.RawMessage
	Failure *Failure
	// StartedAt and EndedAt bound the execution (UTC, microseconds). EndedAt is zero while it runs; of one that is
	// Retrying, it is when the attempt failed.
	StartedAt time.Time
	EndedAt   time.Time
	// ResumeAt is when an orchestration that has not ended has work again. It is not in the future if Run only timed
	// out, and zero when the orchestration waits for a signal.
	ResumeAt time.Time
	// Woken is set if signals will wake the orchestration, so that callers need not.
	Woken bool
	// Calls holds all calls of the execution, in order.
	Calls []Call
	// Earlier holds the failed attempts before this one, since the orchestration began or last continued as new; oldest
	// first.
	Earlier []Outcome
	// Joined is set if another Run in this process did the work, and this one waited for it.
	Joined bool
	// Rounds is how many rounds Run has committed. A Run that parks without one has made no progress.
	Rounds int
}

// Ended reports whether the orchestration has ended, with success or not, so that nothing follows by itself.
func (o Outcome) Ended() bool { return o.Status.Ended() }

// CallKind is the kind of a call.
type CallKind string

// These are the kinds of calls.
const (
	ActivityCall      CallKind = "Activity"
	OrchestrationCall CallKind = "Orchestration"
	TimerCall         CallKind = "Timer"
	EventCall         CallKind = "Event"
	TaskCall          CallKind = "Task"
)

// Call is a call as the rounds record it. Times are distinct within an orchestration.
type Call struct {
	Kind CallKind
	// Name is the name of the activity, orchestrator or event.
	Name string
	// Child is the id of the called orchestration.
	Child string
	// Input is the input; of a timer, its duration.
	Input json.RawMessage
	// Output is the result of a completed call, Failure the error of one that failed for good; both are nil while the
	// call is open.
	Output  json.RawMessage
	Failure *Failure
	// Attempts is how many attempts have ended.
	Attempts    int
	ScheduledAt time.Time
	EndedAt     time.Time
	// Reused marks a result that was taken over from an earlier execution.
	Reused bool
	// Undoes is the number of the call that this one undoes, 0 for none. Undone marks a call that was undone.
	Undoes int
	Undone bool
	// Close is the policy for a sub-orchestration when its caller ends first.
	Close ParentClose
	// Local marks the call of a local activity (WithLocal).
	Local bool

	attempts int  // how many attempts the call of a sub-orchestration has, 0 for one
	shielded bool // from cancellation
	origin   origin
	spilled  string // hash of an input that is in a blob
}

// summarize derives the state and the calls of an execution from its rounds. It runs no user code, so it works with
// any deployed code.
func summarize(id string, g storedExecution) Outcome {
	out := Outcome{ID: id, Execution: g.number, Status: Running}
	calls := 0
	for _, r := range g.rounds {
		for i := range r.Decided {
			if callKind(r.Decided[i].Kind) != "" {
				calls++
			}
		}
	}
	if calls > 0 {
		out.Calls = make([]Call, 0, calls)
	}
	suspended, began := false, 0
	for _, r := range g.rounds {
		// A call's result can be in the round that made the call, when an earlier execution had it already.
		for _, e := range r.Decided {
			out.applyDecided(g.number, e)
		}
		for _, e := range r.Learned {
			began = max(began, e.start().Rules)
			suspended = e.suspends(suspended, began)
			out.applyLearned(e, suspended)
		}
	}
	return out
}

func (o *Outcome) applyDecided(execution int, e event) {
	switch e.Kind {
	case executionCompleted, executionFailed, executionStopped:
		o.Status, o.Output, o.Failure, o.EndedAt = endStatus(e), e.Payload, e.Failure, fromMicros(e.At)
	case callCanceled:
		o.interrupted(e)
	}
	if kind := callKind(e.Kind); kind != "" {
		to := e.target()
		o.Calls = append(o.Calls, Call{Kind: kind, Name: e.Name, Child: to.Child, Input: e.Payload, ScheduledAt: fromMicros(e.At), spilled: blobHash(e.Blob),
			Undoes: to.Undoes, Close: to.Close, Local: to.Local, attempts: e.Attempt, shielded: e.Shielded, origin: origin{Execution: execution, Task: e.Task, ScheduledAt: e.At}})
	}
	if undone := e.target().Undoes; undone > 0 && undone <= len(o.Calls) {
		o.Calls[undone-1].Undone = true
	}
}

// callKind returns the kind of call that a decision makes, "" for none.
func callKind(k eventKind) CallKind {
	switch k {
	case activityScheduled:
		return ActivityCall
	case childScheduled:
		return OrchestrationCall
	case timerScheduled:
		return TimerCall
	case eventAwaited:
		return EventCall
	case taskCreated:
		return TaskCall
	}
	return ""
}

// interrupted marks a call as canceled.
func (o *Outcome) interrupted(e event) {
	if e.Task < 1 || e.Task > len(o.Calls) || !o.Calls[e.Task-1].EndedAt.IsZero() {
		return
	}
	c := &o.Calls[e.Task-1]
	c.Failure, c.EndedAt = &Failure{Message: ErrCanceled.Error(), Code: codeCanceled, Permanent: true}, fromMicros(e.At)
}

// suspends reports whether the execution is suspended after the event. before is whether it was suspended before, and
// rules the version of the rules by which it began.
func (e event) suspends(before bool, rules int) bool {
	switch e.Kind {
	case executionStarted:
		return e.Inherited.suspended()
	case executionSuspended, executionResumed:
		return e.Kind == executionSuspended
	case executionCanceled:
		return before && rules < rules3
	}
	return before
}

func activeStatus(suspended bool) Status {
	if suspended {
		return Suspended
	}
	return Running
}

func (o *Outcome) applyLearned(e event, suspended bool) {
	if e.Kind == executionStarted {
		s := e.start()
		o.Orchestrator, o.CorrelationID, o.StartedAt = e.Name, s.CorrelationID, fromMicros(e.At)
		o.Input, o.Carry, o.Parent, o.Reference, o.Version, o.TenantID = e.Payload, s.Carry, s.Parent, s.Reference, s.Version, s.Tenant
		switch {
		case !o.EndedAt.IsZero():
		case s.Held:
			o.Status = Pending
		default:
			o.Status = activeStatus(suspended)
		}
		return
	}
	switch {
	case e.Kind == executionStalled:
		o.Status, o.Failure = Stalled, e.Failure
	case (e.Kind == executionReleased || e.Kind == executionRecovered) && o.EndedAt.IsZero():
		o.Status, o.Failure = activeStatus(suspended), nil
	case e.Kind == executionCanceled:
		for i, c := range o.Calls {
			if c.ScheduledAt.Before(fromMicros(e.At)) && !c.shielded { // calls that were made after the cancellation continue
				o.interrupted(event{Task: i + 1, At: e.At})
			}
		}
		fallthrough
	case e.Kind == executionSuspended, e.Kind == executionResumed:
		if o.EndedAt.IsZero() && o.Status != Stalled && o.Status != Pending {
			o.Status = activeStatus(suspended)
		}
	}
	if e.Task < 1 || e.Task > len(o.Calls) {
		return // a replay reports the error
	}
	c := &o.Calls[e.Task-1]
	if !c.EndedAt.IsZero() {
		return // a second result changes nothing
	}
	switch e.Kind {
	case attemptFailed:
		c.Attempts = e.Attempt
	case activityFailed, childFailed:
		c.Attempts, c.Failure, c.EndedAt = e.Attempt, e.Failure, fromMicros(e.At)
	case activityCompleted, childCompleted, timerFired, taskCompleted:
		c.Attempts, c.Output, c.EndedAt = c.Attempts+1, e.Payload, fromMicros(e.At)
		c.origin.EndedAt = e.At
		if e.reused() {
			c.Reused, c.origin = true, *e.Origin
			c.ScheduledAt, c.EndedAt = fromMicros(e.Origin.ScheduledAt), fromMicros(e.Origin.EndedAt)
		}
	}
}
