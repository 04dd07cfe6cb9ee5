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

// eventKind names an event in the rounds. Kinds are stored: they are added, never renamed.
type eventKind string

// These events are what an orchestration learns.
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
	// callReturned: no process runs the canceled activity any more.
	callReturned eventKind = "CallReturned"
	// activitiesSent: other processes run the activities of Tasks.
	activitiesSent eventKind = "ActivitiesSent"
	eventRaised    eventKind = "EventRaised"
	// overtakersReleased: the events of a stream do not wait any more for the earlier one that is missing.
	overtakersReleased eventKind = "OvertakersReleased"
	// eventsReleased: the code may see the next events of an attempt before; Attempt is how many, 0 for one.
	eventsReleased eventKind = "EventsReleased"
	// taskCompleted: a person, whose name is in Reason, completed a human task.
	taskCompleted eventKind = "TaskCompleted"

	// executionReleased: an execution that was started without its first turn (Held) goes on.
	executionReleased   eventKind = "ExecutionReleased"
	executionSuspended  eventKind = "ExecutionSuspended"
	executionResumed    eventKind = "ExecutionResumed"
	executionCanceled   eventKind = "ExecutionCanceled"
	executionTerminated eventKind = "ExecutionTerminated"
	executionTimedOut   eventKind = "ExecutionTimedOut"
	// executionStalled: the code cannot go on, because of Failure. Events are kept until executionRecovered.
	executionStalled   eventKind = "ExecutionStalled"
	executionRecovered eventKind = "ExecutionRecovered"
	// executionTakenOver: this process goes on in place of the node Name, which is gone.
	executionTakenOver eventKind = "ExecutionTakenOver"
	// executionGivenUp: no further attempt is made.
	executionGivenUp eventKind = "ExecutionGivenUp"

	// orchestrationPurged is the only event in the first round of an execution that never runs: the rows are being
	// deleted.
	orchestrationPurged eventKind = "OrchestrationPurged"
)

// These events are what an orchestration decides.
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

// event is one entry of a round. Orchestrations hold many thousands of events, so what few of them carry is behind
// pointers. What these point at is shared by copies of the event: who changes it replaces it by a changed copy. How
// events are stored is in storedevent.go.
type event struct {
	Kind eventKind
	// At is when, in microseconds of Unix time. Times strictly increase within an orchestration, so they can be keys.
	At int64
	// Task is the number of the call that the event is about, from 1.
	Task int
	// Name is the name of the orchestrator, activity or event.
	Name string
	// Payload is the input of what starts and the output of what completes. Blob names the blob that holds the payload
	// instead.
	Payload json.RawMessage
	Blob    string
	// Failure is the error of what failed.
	Failure *Failure
	// Attempt is the attempt that failed, and Due when the next one is due; of a timer, Due is when it fires. Of other
	// events that were learned, Due is what the clock showed when At is later by more than clockAhead, else 0. In a
	// start, Attempt is the number of the attempt that the execution is, from 1. In a call of a sub-orchestration, it
	// is how many attempts the call has, 0 for one.
	Attempt int
	Due     int64
	// Retrying says of a failure that another attempt follows. Keeps says of an end that the next attempt may keep the
	// results.
	Retrying bool
	Keeps    bool
	// Shielded says that a cancellation does not reach the call.
	Shielded bool
	// Start is what only a start carries, Target what a decision is aimed at, and Signal what is known of the signal
	// that brought the event or that it becomes. The methods start, target and signal read them, nil or not.
	Start  *startDetails
	Target *target
	Signal *signalDetails
	// Inherited is what an execution took over from the one before it.
	Inherited *inheritance
	// Origin is set on a result that was taken over from an earlier execution, which holds its payload and its times.
	Origin *origin
}

// startDetails is what the start of an execution carries besides what all events have.
type startDetails struct {
	CorrelationID string
	// Base is the execution whose results a start builds on: itself, or an earlier attempt whose results it keeps.
	// First is the execution that was started from outside: itself, or an earlier one that continued as new or was
	// retried.
	Base  int
	First int
	// Series says of a start from outside that runs follow each other under the id (ReuseEnded), so its rows are not
	// kept for ever.
	Series bool
	// Before counts the rounds of all executions before, and Created is when the first of them began, in microseconds.
	Before  int
	Created int64
	// Version is the orchestrator's version that a start picked. Held says that the first turn waits for
	// executionReleased, and Drop that events which nobody waits for are dropped. Reference is the business reference.
	Version   string
	Held      bool
	Drop      bool
	Reference *Reference
	// Rules is the version of the runtime's rules under which an execution began. Publishes says that there was a
	// publisher then, Signals that there were queues, and WillRetry that another attempt follows a failure.
	Rules     int
	Publishes bool
	Signals   bool
	WillRetry bool
	// Revived says that the attempt before had ended for good: commands that were given before the start do not count.
	Revived bool
	// Call is the call for which a sub-orchestration was started. Errors names the types of errors that its caller can
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

// target says at what a decision is aimed, where a name does not say it.
type target struct {
	// Undoes is the number of the call that this one undoes.
	Undoes int
	// Local says that the call is of a local activity.
	Local bool
	// Child is the id of the orchestration that a call started or that an event is for, and the key of a publication.
	Child string
	// Close is what happens to a sub-orchestration when its caller ends before it; "" is CancelChild.
	Close ParentClose
	// Tenant is the tenant of a publication, and Order its order key.
	Tenant string
	Order  string
	// Tasks are the calls of activitiesSent.
	Tasks []int
}

// signalDetails is what is known of a signal.
type signalDetails struct {
	// ID is the id of the signal that brought the event, or, in a start, that of the request.
	ID string
	// Reason is the reason that an operator gave.
	Reason string
	// Trace is the trace context of who sent the signal.
	Trace string
	// Accepted is when a command was given, in microseconds.
	Accepted int64
	// Stream and Sequence order the events that one orchestration sends to another. Previous is when the event before
	// was sent, in microseconds. Overtakes says that the event came before one that was sent earlier, and waits for it.
	Stream    string
	Sequence  int
	Previous  int64
	Overtakes bool
}

// clock returns what the clock showed when the event was learned. At is later after the clock of a process was ahead,
// because it only grows.
func (e event) clock() time.Time {
	if e.Due != 0 && e.Kind != attemptFailed {
		return fromMicros(e.Due)
	}
	return fromMicros(e.At)
}

func (e event) start() startDetails   { return valueOf(e.Start) }
func (e event) target() target        { return valueOf(e.Target) }
func (e event) signal() signalDetails { return valueOf(e.Signal) }

// valueOf is what p points at, the zero value for nil.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// broughtBy is the signal of an event about which only its id is known; nil when there is none.
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

// sameDecision reports whether the replay decided what is recorded: kind, call, name and input. Times do not count, and
// neither does the result with which an execution ends, because newer code may word it better.
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

// describe describes a decision in words, for error texts.
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

// check reports what no round written by this program contains.
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

// round is one atomic commit: what was learned, and what it led to.
type round struct {
	Learned []event `json:"learned,omitempty"`
	Decided []event `json:"decided,omitempty"`
	// More says that the rest of the turn's decisions is in the rounds that follow.
	More bool `json:"more,omitempty"`
}

// names reports whether the round names blobs.
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

// clean makes the event's texts what they are after being stored and read back, and removes secrets from those that come
// from outside. Payloads are so already, because marshal or compact made them, and keep what they hold.
func (e event) clean() event {
	e.Name, e.Failure = cleanText(e.Name), e.Failure.clean()
	if e.signal().Reason != "" {
		s := *e.Signal
		s.Reason = redact.Text(cleanText(s.Reason))
		e.Signal = &s
	}
	return e
}

// cleanText replaces what is not UTF-8 in a text.
func cleanText(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// compact removes white space around the tokens of JSON, as storing it in a round does.
func compact(raw json.RawMessage) json.RawMessage {
	if end, ok := jsonEnd(raw, 0); ok && end == len(raw) {
		return bytes.Clone(raw) // there is none
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, raw); err != nil {
		return raw
	}
	return buf.Bytes()
}

// marshal is payload.Marshal, so that all payloads, and what holds them, are written in one way.
func marshal(v any) (json.RawMessage, error) { return payload.Marshal(v) }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }
