package orchestrator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/queues"
)

// SignalType is the type of a signal (persistence document, section 6).
type SignalType string

// These are the types of signals. All but ExternalSignal only wake an orchestration, which then finds its work itself.
// So repeated deliveries do no harm.
const (
	TaskCompleted        SignalType = "TaskCompleted"
	TimerDue             SignalType = "TimerDue"
	RetryDue             SignalType = "RetryDue"
	ExternalSignal       SignalType = "ExternalSignal"
	SubWorkflowCompleted SignalType = "SubWorkflowCompleted"
	InternalContinue     SignalType = "InternalContinue"
)

// Signal is a message that may wake an orchestration, as it travels through the signal queue (persistence document,
// section 6).
type Signal struct {
	// SignalID is the same for every delivery. The contents of the signal are applied once.
	SignalID string `json:"signalId"`
	// InstanceID is the orchestration's id.
	InstanceID      string     `json:"workflowInstanceId"`
	RuntimeProvider string     `json:"runtimeProvider"`
	Type            SignalType `json:"signalType"`
	// ExpectedVersion is the StateVersion that the sender has seen; 0 is any. An ExternalSignal with an expected
	// version is stale when the orchestration has another one. Signals of the other types are stale when they expect a
	// later version than the stored one.
	ExpectedVersion int64 `json:"expectedVersion"`
	// WaitingToken identifies the wait that the signal is for. The signal is stale when that wait is over.
	WaitingToken  string     `json:"waitingToken,omitempty"`
	OccurredAtUtc time.Time  `json:"occurredAtUtc"`
	DueAtUtc      *time.Time `json:"dueAtUtc,omitempty"`
	// Trace is the trace context of the sender.
	Trace   string  `json:"traceparent,omitempty"`
	Payload Payload `json:"payload,omitzero"`
}

// Payload is the content of a signal, such as an event or the command of an operator.
type Payload struct {
	// Event is the name of an event, Data its value.
	Event string          `json:"event,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	// Command is "suspend", "resume", "cancel" or "terminate", or "giveUp", which only a caller sends to its
	// sub-orchestration. Reason is the reason for it.
	Command string `json:"command,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Results are the results of activities that another process ran. If Blob is set, that blob holds the payload
	// instead.
	Results []activityResult `json:"results,omitempty"`
	Blob    string           `json:"blob,omitempty"`
	// Caller is set on a command from an orchestration to its sub-orchestration.
	Caller *caller `json:"caller,omitempty"`
	// Child is the sub-orchestration that has ended, in a SubWorkflowCompleted.
	Child string `json:"child,omitempty"`
	// Stream, Sequence and Previous order the events of one sender, as in the rounds.
	Stream   string     `json:"stream,omitempty"`
	Sequence int        `json:"sequence,omitempty"`
	Previous *time.Time `json:"previous,omitempty"`
	// Lost announces that messages may be lost, so everything is sent again.
	Lost bool `json:"lost,omitempty"`
	// TakenFrom is the node that is gone and that had the orchestration in progress. Held records that it had reported
	// so itself.
	TakenFrom string `json:"takenFrom,omitempty"`
	Held      bool   `json:"held,omitempty"`
}

// caller identifies a call, so that a sub-orchestration can be stopped before it has begun.
type caller struct {
	ID            string `json:"id"`
	CorrelationID string `json:"correlationId"`
	TenantID      string `json:"tenantId,omitempty"`
	Orchestrator  string `json:"orchestrator"` // name of the called orchestrator
	// Call is the call, without the attempt.
	Call callRef `json:"call"`
}

// These are the commands of operators.
const (
	commandSuspend   = "suspend"
	commandResume    = "resume"
	commandCancel    = "cancel"
	commandTerminate = "terminate"
	commandGiveUp    = "giveUp"
)

// commands maps commands to their events.
func commands() map[string]eventKind {
	return map[string]eventKind{commandSuspend: executionSuspended, commandResume: executionResumed,
		commandCancel: executionCanceled, commandTerminate: executionTerminated, commandGiveUp: executionGivenUp}
}

// maxSignalName bounds the id of a signal and the name of an event, in bytes.
const maxSignalName = 1 << 10

// ErrSignal: the signal is invalid, and a redelivery cannot help.
var ErrSignal = errors.New("not a signal")

// DecodeSignal decodes the body of a message of the signal queue. The error is ErrSignal.
func DecodeSignal(body []byte) (Signal, error) {
	var s Signal
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("%w: %w", ErrSignal, payload.Explain(err))
	}
	return s, s.validate()
}

func (s Signal) validate() error {
	switch s.Type {
	case TaskCompleted, TimerDue, RetryDue, SubWorkflowCompleted, InternalContinue:
	case ExternalSignal:
		if _, known := commands()[s.Payload.Command]; known == (s.Payload.Event != "") || s.Payload.Command == commandGiveUp && s.Payload.Caller == nil {
			return fmt.Errorf("%w: an external signal brings an event or one of the commands suspend, resume, cancel and terminate", ErrSignal)
		}
	default:
		return fmt.Errorf("%w: unknown type %.64q", ErrSignal, s.Type)
	}
	if len(s.SignalID) > maxSignalName || len(s.Payload.Event) > maxSignalName || !validBlob(s.Payload.Blob) {
		return fmt.Errorf("%w: ids and names have at most %d bytes, and blobs are named by a hash", ErrSignal, maxSignalName)
	}
	if s.SignalID == "" || s.InstanceID == "" || s.RuntimeProvider != provider {
		return fmt.Errorf("%w: signalId, workflowInstanceId and the runtime provider %s are required", ErrSignal, provider)
	}
	return s.Payload.storable()
}

func (p Payload) storable() error {
	err := storable(p.Data)
	for _, r := range p.Results {
		err = cmp.Or(err, storable(r.Output), storable(r.Progress))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSignal, err)
	}
	return nil
}

// event returns the event that the orchestration learns from the signal; ok is false when the signal only wakes.
func (s Signal) event() (event, bool) {
	if s.Type != ExternalSignal {
		return event{}, false
	}
	if kind, ok := commands()[s.Payload.Command]; ok {
		by := signalDetails{ID: s.SignalID, Reason: s.Payload.Reason, Trace: s.Trace}
		e := event{Kind: kind, Signal: &by}
		switch kind {
		case executionSuspended, executionResumed, executionCanceled:
			by.Accepted = max(0, s.OccurredAtUtc.UnixMicro())
		case executionGivenUp:
			e.Failure = &Failure{Message: s.Payload.Reason, Code: codeGivenUp}
		}
		return e, true
	}
	data := s.Payload.Data
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	by := signalDetails{ID: s.SignalID, Trace: s.Trace, Stream: s.Payload.Stream, Sequence: s.Payload.Sequence}
	if s.Payload.Previous != nil {
		by.Previous = max(0, s.Payload.Previous.UnixMicro())
	}
	return event{Kind: eventRaised, Name: s.Payload.Event, Payload: compact(data), Signal: &by}, true
}

// Raise sends an event to an orchestration, with data as its value. It does not wait: the event is kept until the
// orchestration requests it, even before the orchestration has begun. Two events with the same id are one; "" makes a
// new id.
func (r *Runtime) Raise(ctx context.Context, orchestration, name string, data any, id string) error {
	value, err := encodePayload(data)
	if err != nil {
		return fmt.Errorf("raise event %s: %w", name, err)
	}
	return r.signal(ctx, orchestration, Payload{Event: name, Data: value}, id)
}

// Suspend keeps an orchestration from deciding anything until Resume or Cancel; results and events are kept for it. A
// Suspend that arrives after a command that was given later (Suspend, Resume or Cancel) does nothing.
func (r *Runtime) Suspend(ctx context.Context, orchestration, reason string) error {
	return r.signal(ctx, orchestration, Payload{Command: commandSuspend, Reason: reason}, "")
}

// Resume ends a suspension.
func (r *Runtime) Resume(ctx context.Context, orchestration, reason string) error {
	return r.signal(ctx, orchestration, Payload{Command: commandResume, Reason: reason}, "")
}

// Cancel requests the end of an orchestration: its waits are interrupted, and its code decides how to clean up
// (Context.Canceled). It resumes an orchestration that is suspended, because the clean-up is code. To suspend the
// clean-up, too, call Suspend again; a second Cancel does not resume that.
func (r *Runtime) Cancel(ctx context.Context, orchestration, reason string) error {
	return r.signal(ctx, orchestration, Payload{Command: commandCancel, Reason: reason}, "")
}

// Terminate ends an orchestration and its sub-orchestrations without running their code again.
func (r *Runtime) Terminate(ctx context.Context, orchestration, reason string) error {
	return r.signal(ctx, orchestration, Payload{Command: commandTerminate, Reason: reason}, "")
}

// Send sends a signal to the orchestration that it names. Use Raise and the command methods where they suffice. An
// ExternalSignal with an ExpectedVersion is dropped when the orchestration has another version. A signal without
// SignalID gets a new one. The error is ErrSignal when the signal is not valid.
func (r *Runtime) Send(ctx context.Context, s Signal) error {
	if s.SignalID == "" {
		s.SignalID = uuid.NewString()
	}
	return r.send(ctx, s, 0)
}

func (r *Runtime) signal(ctx context.Context, orchestration string, p Payload, id string) error {
	if id == "" {
		id = uuid.NewString()
	}
	return r.send(ctx, Signal{SignalID: id, InstanceID: orchestration, Type: ExternalSignal, Payload: p}, 0)
}

// send puts a signal into the signal queue, or into the schedule queue if it is due later.
func (r *Runtime) send(ctx context.Context, s Signal, delay time.Duration) error {
	if r.config.Queues == nil {
		return fmt.Errorf("signal to orchestration %s: %w", s.InstanceID, ErrNoSignals)
	}
	if s.Trace == "" && s.Type == ExternalSignal && r.config.Tracer != nil {
		s.Trace = r.config.Tracer.Current(ctx)
	}
	s.RuntimeProvider, s.OccurredAtUtc = provider, r.config.Now().UTC()
	s.Payload.Reason = redact.Text(s.Payload.Reason)
	if err := s.validate(); err != nil {
		return err
	}
	queue := r.config.SignalQueue
	if delay > 0 {
		queue = r.config.ScheduleQueue
	}
	body, err := r.pack(ctx, s)
	if err == nil {
		_, err = r.config.Queues.Send(ctx, queue, body, delay)
	}
	if err != nil {
		return fmt.Errorf("signal to orchestration %s: %w", s.InstanceID, err)
	}
	return nil
}

// sendOnce sends a signal whose cause is durable elsewhere: in the message in progress, the index or the row of a takeover. While its
// outcome is unknown it is not sent again, because slow storage would get many copies; the error has the cause repeated later.
func (r *Runtime) sendOnce(ctx context.Context, s Signal, delay time.Duration) error {
	return r.send(queues.WithSingleTry(ctx), s, delay)
}
