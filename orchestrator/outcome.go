package orchestrator

import (
	"encoding/json"
	"time"
)

// Status is where an orchestration stands, in the words of Durable Functions.
type Status string

// The states that an orchestration can be in. One that continues as new is Running.
const (
	Pending    Status = "Pending" // started, and nobody has taken it up yet
	Running    Status = "Running"
	Suspended  Status = "Suspended"
	Retrying   Status = "Retrying" // an attempt failed and another one follows, for which events and commands are kept
	Stalled    Status = "Stalled"  // the code cannot go on; it does so when it was mended, by itself
	Completed  Status = "Completed"
	Failed     Status = "Failed"
	Terminated Status = "Terminated"
	Canceled   Status = "Canceled"
)

// Ended reports whether nothing follows by itself.
func (s Status) Ended() bool {
	return s == Completed || s == Failed || s == Terminated || s == Canceled
}

// Outcome is what Run leaves behind: where the orchestration's execution stands and what it did.
type Outcome struct {
	ID            string
	Orchestrator  string
	CorrelationID string
	Execution     int
	// Input is the argument of the execution, Carry what its Start carried.
	Input json.RawMessage
	Carry []byte
	// Version is the one of the orchestrator's code that it runs, Reference what the business calls it, or nil.
	Version   string
	Reference *Reference
	// Parent is the id of the orchestration that called it, "" for none.
	Parent string
	Status Status
	// Output is the result of a completed execution, Failure the error of a failed one.
	Output  json.RawMessage
	Failure *Failure
	// StartedAt and EndedAt bound the execution (UTC, microseconds); EndedAt is zero while it runs. Of one that is Retrying,
	// it is when the attempt failed.
	StartedAt time.Time
	EndedAt   time.Time
	// ResumeAt says when one that goes on has something to do again: now or before, when only the time ran out; zero when
	// it waits for a signal.
	ResumeAt time.Time
	// Woken says that signals drive it on, and that nobody else has to.
	Woken bool
	// Calls holds everything that the execution called, in order.
	Calls []Call
	// Earlier holds the attempts that failed before this one, since the orchestration began or last continued as new;
	// oldest first.
	Earlier []Outcome
	// Joined says that another Run of this process did the work, and this one waited for it.
	Joined bool
	// Rounds counts the rounds that Run has committed. A Run that parks without one has made no progress.
	Rounds int
}

// Ended reports whether the orchestration has ended, well or not: nothing follows by itself.
func (o Outcome) Ended() bool { return o.Status.Ended() }

// CallKind says what was called.
type CallKind string

// The kinds of calls.
const (
	ActivityCall      CallKind = "Activity"
	OrchestrationCall CallKind = "Orchestration"
	TimerCall         CallKind = "Timer"
	EventCall         CallKind = "Event"
	TaskCall          CallKind = "Task"
)

// Call is one call as the rounds hold it. Times are distinct within an orchestration.
type Call struct {
	Kind CallKind
	// Name is the activity's, orchestrator's or event's.
	Name string
	// Child is the id of the orchestration that was called.
	Child string
	// Input is the argument; of a timer, how long it is.
	Input json.RawMessage
	// Output is the result of one that completed, Failure the error of one that failed for good; both are nil while it
	// goes on.
	Output  json.RawMessage
	Failure *Failure
	// Attempts counts the tries that ended.
	Attempts    int
	ScheduledAt time.Time
	EndedAt     time.Time
	// Reused says that an earlier execution made the call, and this one took its result over.
	Reused bool
	// Undoes is the number of the call that this one takes back, 0 for none, and Undone says that this one was taken back.
	Undoes int
	Undone bool
	// Close is what becomes of a sub-orchestration when its caller ends before it.
	Close ParentClose

	attempts int  // that a sub-orchestration has, 0 for one
	shielded bool // from cancellation
	origin   origin
	spilled  string // hash of an input that a blob holds, in place of Input
}

// summarize tells from its rounds what an execution did. It runs no user code, so it holds whatever code is deployed.
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
	suspended := false
	for _, r := range g.rounds {
		// A call's result can stand in the round that made the call, when an earlier execution had it already.
		for _, e := range r.Decided {
			out.applyDecided(g.number, e)
		}
		for _, e := range r.Learned {
			suspended = e.suspends(suspended)
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
		o.Calls = append(o.Calls, Call{Kind: kind, Name: e.Name, Child: e.Child, Input: e.Payload, ScheduledAt: fromMicros(e.At), spilled: blobHash(e.Blob),
			Undoes: e.Undoes, Close: e.Close, attempts: e.Attempt, shielded: e.Shielded, origin: origin{Execution: execution, Task: e.Task, ScheduledAt: e.At}})
	}
	if e.Undoes > 0 && e.Undoes <= len(o.Calls) {
		o.Calls[e.Undoes-1].Undone = true
	}
}

// callKind is the kind of call that a decision is, "" when it is none.
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

// interrupted ends a call that the orchestration does not want any more.
func (o *Outcome) interrupted(e event) {
	if e.Task < 1 || e.Task > len(o.Calls) || !o.Calls[e.Task-1].EndedAt.IsZero() {
		return
	}
	c := &o.Calls[e.Task-1]
	c.Failure, c.EndedAt = &Failure{Message: ErrCanceled.Error(), Code: codeCanceled, Permanent: true}, fromMicros(e.At)
}

// suspends says whether an execution is suspended behind the event that was so before it, or was not.
func (e event) suspends(before bool) bool {
	switch e.Kind {
	case executionStarted:
		return e.Inherited.suspended()
	case executionSuspended, executionResumed:
		return e.Kind == executionSuspended
	}
	return before
}

// activeStatus is the status of an execution that goes on.
func activeStatus(suspended bool) Status {
	if suspended {
		return Suspended
	}
	return Running
}

func (o *Outcome) applyLearned(e event, suspended bool) {
	if e.Kind == executionStarted {
		o.Orchestrator, o.CorrelationID, o.StartedAt = e.Name, e.CorrelationID, fromMicros(e.At)
		o.Input, o.Carry, o.Parent, o.Reference, o.Version = e.Payload, e.Carry, e.Parent, e.Reference, e.Version
		switch {
		case !o.EndedAt.IsZero():
		case e.Held:
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
			if c.ScheduledAt.Before(fromMicros(e.At)) && !c.shielded { // what it called since then goes on
				o.interrupted(event{Task: i + 1, At: e.At})
			}
		}
	case e.Kind == executionSuspended, e.Kind == executionResumed:
		if o.EndedAt.IsZero() && o.Status != Stalled && o.Status != Pending {
			o.Status = activeStatus(suspended)
		}
	}
	if e.Task < 1 || e.Task > len(o.Calls) {
		return // replay reports it
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
