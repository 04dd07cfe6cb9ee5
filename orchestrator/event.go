package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/redact"
)

// eventKind names an event in the rounds. Kinds are stored, so they are added, never renamed.
type eventKind string

// These events are learned by an orchestration.
const (
	executionStarted  eventKind = "ExecutionStarted"
	activityCompleted eventKind = "ActivityCompleted"
	activityFailed    eventKind = "ActivityFailed"
	// attemptFailed: an attempt failed, and the next one is due at Due.
	attemptFailed  eventKind = "AttemptFailed"
	timerFired     eventKind = "TimerFired"
	childCompleted eventKind = "OrchestrationCompleted"
	childFailed    eventKind = "OrchestrationFailed"
	// activityProgressed: a running activity reported its progress.
	activityProgressed eventKind = "ActivityProgressed"
	// callReturned: no process runs the canceled activity now.
	callReturned eventKind = "CallReturned"
	// activitiesSent: other processes run the activities of Tasks.
	activitiesSent eventKind = "ActivitiesSent"
	eventRaised    eventKind = "EventRaised"
	// overtakersReleased: the events of a stream stop waiting for the missing earlier one.
	overtakersReleased eventKind = "OvertakersReleased"
	// eventsReleased: the code may see the next events of a previous attempt; Attempt is how many, 0 for one.
	eventsReleased eventKind = "EventsReleased"
	// taskCompleted: the person in Reason completed a human task.
	taskCompleted eventKind = "TaskCompleted"

	// executionReleased: an execution that was started without its first turn (Held) continues.
	executionReleased   eventKind = "ExecutionReleased"
	executionSuspended  eventKind = "ExecutionSuspended"
	executionResumed    eventKind = "ExecutionResumed"
	executionCanceled   eventKind = "ExecutionCanceled"
	executionTerminated eventKind = "ExecutionTerminated"
	executionTimedOut   eventKind = "ExecutionTimedOut"
	// executionStalled: the code cannot continue, because of Failure. Events are kept until executionRecovered.
	executionStalled   eventKind = "ExecutionStalled"
	executionRecovered eventKind = "ExecutionRecovered"
	// executionTakenOver: this process continues in place of the node Name, which is gone.
	executionTakenOver eventKind = "ExecutionTakenOver"
	// executionGivenUp: no further attempt is made.
	executionGivenUp eventKind = "ExecutionGivenUp"

	// orchestrationPurged is the only event in the first round of an execution that never runs: the rows are being
	// deleted.
	orchestrationPurged eventKind = "OrchestrationPurged"
)

// These events are decided by an orchestration.
const (
	activityScheduled  eventKind = "ActivityScheduled"
	childScheduled     eventKind = "OrchestrationScheduled"
	timerScheduled     eventKind = "TimerScheduled"
	eventAwaited       eventKind = "EventAwaited"
	taskCreated        eventKind = "TaskCreated"
	taskEscalated      eventKind = "TaskEscalated"
	callCanceled       eventKind = "CallCanceled"
	childDetached      eventKind = "OrchestrationDetached"
	eventSent          eventKind = "EventSent" // to another orchestration
	eventPublished     eventKind = "EventPublished"
	sideEffectRecorded eventKind = "SideEffectRecorded"
	patchRecorded      eventKind = "PatchRecorded"
	executionCompleted eventKind = "ExecutionCompleted"
	executionFailed    eventKind = "ExecutionFailed"
	executionContinued eventKind = "ExecutionContinuedAsNew"
	executionStopped   eventKind = "ExecutionStopped" // because it was terminated or canceled
)

// event is one entry of a round. Orchestrations hold many thousands of events, so rarely used fields are behind
// pointers. Copies of an event share the values behind its pointers: to change a value, replace it with a changed
// copy. The stored form of events is in storedevent.go.
type event struct {
	Kind eventKind
	// At is the time in microseconds of Unix time. Times strictly increase within an orchestration, so they can be
	// keys.
	At int64
	// Task is the number of the call that the event is about, from 1.
	Task int
	// Name is the name of the orchestrator, activity or event.
	Name string
	// Payload is the input of a call or start, or the output of a completion. If Blob is set, that blob holds the
	// payload instead.
	Payload json.RawMessage
	Blob    string
	// Failure is the recorded error.
	Failure *Failure
	// Attempt is the attempt that failed, and Due when the next one is due. Of a timer, Due is when it fires. Of other
	// learned events, Due is the clock's reading when At is later by more than clockAhead, else 0. In a start, Attempt
	// is the number of the execution's attempt, from 1. In a call of a sub-orchestration, it is how many attempts the
	// call has, 0 for one.
	Attempt int
	Due     int64
	// Retrying marks a failure that another attempt follows. Keeps allows the next attempt to keep the results.
	Retrying bool
	Keeps    bool
	// Shielded marks a call that a cancellation does not reach.
	Shielded bool
	// Start holds the fields of a start, Target the target of a decision, and Signal the details of the signal that
	// brought the event or that it becomes. The methods start, target and signal read them, nil or not.
	Start  *startDetails
	Target *target
	Signal *signalDetails
	// Inherited is the state that an execution took over from the previous one.
	Inherited *inheritance
	// Origin is set on a result that was taken over from an earlier execution, which holds its payload and its times.
	Origin *origin
}

// startDetails holds the fields that only the start of an execution has.
type startDetails struct {
	CorrelationID string
	// Base is the execution whose results a start builds on: itself, or an earlier attempt whose results it keeps.
	// First is the execution that was started from outside: itself, or an earlier one that continued as new or was
	// retried.
	Base  int
	First int
	// Series marks a start from outside under an id whose runs follow each other (ReuseEnded), so its rows are not
	// kept for ever.
	Series bool
	// Before counts the rounds of all executions before, and Created is when the first of them began, in microseconds.
	Before  int
	Created int64
	// Version is the orchestrator's version that a start picked. Held makes the first turn wait for executionReleased.
	// Drop drops events that no call waits for. Reference is the business reference.
	Version   string
	Held      bool
	Drop      bool
	Reference *Reference
	// Rules is the version of the runtime's rules under which an execution began. Publishes records that a publisher
	// existed then, Signals that queues did, and WillRetry that another attempt follows a failure.
	Rules     int
	Publishes bool
	Signals   bool
	WillRetry bool
	// Revived marks a start after an attempt that had ended for good: commands from before the start do not count.
	Revived bool
	// Call is the call for which a sub-orchestration was started. Errors names the error types that its caller can
	// decode.
	Call   *callRef
	Errors []string
	// Parent is the id of the caller, and Tenant the tenant that the orchestration belongs to.
	Parent string
	Tenant string
	// Trace is Start.Trace.
	Trace string
	// Carry is Start.Carry. Timeout is Start.Timeout in microseconds.
	Carry   []byte
	Timeout int64
}

// target is the target of a decision, beyond its name.
type target struct {
	Undoes int
	// Local marks the call of a local activity.
	Local bool
	// Child is the id of the orchestration that a call started or that an event is for, or the key of a publication.
	Child string
	// Close is the policy for a sub-orchestration when its caller ends first; "" is CancelChild.
	Close ParentClose
	// Tenant is the tenant of a publication, and Order its order key.
	Tenant string
	Order  string
	// Tasks are the calls of activitiesSent.
	Tasks []int
}

// signalDetails holds the known details of a signal.
type signalDetails struct {
	// ID is the id of the signal that brought the event, or, in a start, of the request.
	ID string
	// Reason is the reason that an operator gave.
	Reason string
	// Trace is the sender's trace context.
	Trace string
	// Accepted is when a command was given, in microseconds.
	Accepted int64
	// Stream and Sequence order the events that one orchestration sends to another. Previous is when the previous
	// event was sent, in microseconds. Overtakes marks an event that arrived before an earlier one, and waits for it.
	Stream    string
	Sequence  int
	Previous  int64
	Overtakes bool
}

// clock returns the clock's reading when the event was learned. At is later if the clock of a process was ahead,
// because At only grows.
func (e event) clock() time.Time {
	if e.Due != 0 && e.Kind != attemptFailed {
		return fromMicros(e.Due)
	}
	return fromMicros(e.At)
}

func (e event) start() startDetails   { return valueOf(e.Start) }
func (e event) target() target        { return valueOf(e.Target) }
func (e event) signal() signalDetails { return valueOf(e.Signal) }

// valueOf returns the value that p points at, or the zero value for nil.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// broughtBy returns the signal of an event if only its id is known; nil without an id.
func broughtBy(id string) *signalDetails {
	if id == "" {
		return nil
	}
	return &signalDetails{ID: id}
}

// reused reports whether e is a result that was taken over from an earlier execution.
func (e *event) reused() bool { return e.Origin != nil }

// origin identifies a call of an earlier execution, with its times in microseconds.
type origin struct {
	Execution   int   `json:"execution"`
	Task        int   `json:"task"`
	ScheduledAt int64 `json:"scheduledAt"`
	EndedAt     int64 `json:"endedAt"`
}

// sameDecision reports whether the replay decided as recorded: kind, call, name and input. Times do not count. Nor
// does the result with which an execution ends, because newer code may word it differently.
func sameDecision(recorded, decided *event) bool {
	if recorded.Kind != decided.Kind || recorded.Task != decided.Task || recorded.Name != decided.Name || recorded.target().Undoes != decided.target().Undoes {
		return false
	}
	switch recorded.Kind {
	case activityScheduled, childScheduled, timerScheduled, eventAwaited, taskCreated:
	case childDetached, eventPublished, eventSent:
		if recorded.target().Child != decided.target().Child {
			return false
		}
	default:
		return true
	}
	if recorded.Blob != "" {
		return blobHash(recorded.Blob) == hashOf(decided.Payload)
	}
	return bytes.Equal(recorded.Payload, decided.Payload)
}

// describe returns the decision in words, for error texts.
func (e event) describe() string {
	switch e.Kind {
	case activityScheduled:
		return fmt.Sprintf("call %d of activity %s with input %s", e.Task, e.Name, excerpt(e.Payload))
	case childScheduled:
		return fmt.Sprintf("call %d of orchestrator %s with input %s", e.Task, e.Name, excerpt(e.Payload))
	case timerScheduled:
		return fmt.Sprintf("call %d, a timer of %s", e.Task, e.Payload)
	case eventAwaited:
		return fmt.Sprintf("call %d, a wait for event %q", e.Task, e.Name)
	case taskCreated:
		return fmt.Sprintf("call %d, a human task %s", e.Task, excerpt(e.Payload))
	case taskEscalated:
		return fmt.Sprintf("escalating the human task of call %d", e.Task)
	case callCanceled:
		return fmt.Sprintf("cancelling call %d", e.Task)
	case childDetached:
		return fmt.Sprintf("the start of orchestrator %s as %q with input %s", e.Name, e.target().Child, excerpt(e.Payload))
	case eventPublished:
		return fmt.Sprintf("the event %s with payload %s", e.Name, excerpt(e.Payload))
	case eventSent:
		return fmt.Sprintf("the event %s to orchestration %q with payload %s", e.Name, e.target().Child, excerpt(e.Payload))
	case sideEffectRecorded:
		return fmt.Sprintf("side effect %q", e.Name)
	case patchRecorded:
		return fmt.Sprintf("patch %q", e.Name)
	case executionCompleted:
		return "the end, completed"
	case executionFailed:
		return "the end, failed"
	case executionContinued:
		return "the end, continued as new"
	case executionStopped:
		return "the end, stopped"
	default:
		if e.Task > 0 {
			return fmt.Sprintf("%s of call %d", e.Kind, e.Task)
		}
		return string(e.Kind)
	}
}

// excerpt shortens a payload for an error text.
func excerpt(b []byte) string {
	const most = 80
	if len(b) <= most {
		return string(b)
	}
	return fmt.Sprintf("%s... (%d bytes)", bytes.ToValidUTF8(b[:most], nil), len(b))
}

// check returns an error for a round that this program cannot have written.
func (r round) check() error {
	for _, events := range [][]event{r.Learned, r.Decided} {
		for i := range events {
			switch e := &events[i]; e.Kind {
			case activityFailed, attemptFailed, childFailed, executionFailed, executionStopped, executionStalled, executionGivenUp:
				if e.Failure == nil {
					return fmt.Errorf("%s without an error: %w", e.describe(), ErrCorrupt)
				}
			}
		}
	}
	return nil
}

// round is one atomic commit: the learned events, and the decisions they led to.
type round struct {
	Learned []event `json:"learned,omitempty"`
	Decided []event `json:"decided,omitempty"`
	// More is set if the rounds that follow hold further decisions of the turn.
	More bool `json:"more,omitempty"`
}

func (r round) names() bool {
	return anyNamesBlob(r.Learned) || anyNamesBlob(r.Decided)
}

func anyNamesBlob(events []event) bool {
	for i := range events {
		if e := &events[i]; e.Blob != "" || anyNamesBlob(e.Inherited.unread()) {
			return true
		}
	}
	return false
}

// clean replaces the event's texts by their stored form, and removes secrets from the texts that come from outside.
// Payloads are in stored form already, because marshal or compact made them; their secrets stay.
func (e event) clean() event {
	e.Name, e.Failure = cleanText(e.Name), e.Failure.clean()
	if e.signal().Reason != "" {
		s := *e.Signal
		s.Reason = redact.Text(cleanText(s.Reason))
		e.Signal = &s
	}
	return e
}

// cleanText replaces invalid UTF-8 in a text.
func cleanText(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// compact removes white space around the tokens of JSON, as storing it in a round does.
func compact(raw json.RawMessage) json.RawMessage {
	if end, ok := jsonEnd(raw, 0); ok && end == len(raw) {
		return bytes.Clone(raw) // no white space
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, raw); err != nil {
		return raw
	}
	return buf.Bytes()
}

// marshal is payload.Marshal, so that all payloads are encoded in the same way.
func marshal(v any) (json.RawMessage, error) { return payload.Marshal(v) }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }
