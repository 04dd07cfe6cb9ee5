package timeline

import (
	"cmp"
	"time"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/outbox"
)

// Kind is the subject of an Item; the member of that name is set.
type Kind string

// These are the kinds.
const (
	KindMessage          Kind = "message"
	KindOrchestration    Kind = "orchestration"
	KindChange           Kind = "change"
	KindCall             Kind = "call"
	KindTimer            Kind = "timer"
	KindEvent            Kind = "event"
	KindTask             Kind = "task"
	KindPublication      Kind = "publication"
	KindDelivery         Kind = "delivery"
	KindLink             Kind = "link"
	KindHistory          Kind = "history"
	KindDeadLetter       Kind = "deadLetter"
	KindDeadLetterChange Kind = "deadLetterChange"
	KindAction           Kind = "action"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{KindMessage, KindOrchestration, KindChange, KindCall, KindTimer, KindEvent, KindTask, KindPublication, KindDelivery, KindLink,
		KindHistory, KindDeadLetter, KindDeadLetterChange, KindAction}
}

// Item is one event: exactly one of the pointers is set, named by Kind.
type Item struct {
	// ID identifies the item within the correlation id.
	ID string
	// At is when it happened or started. EndedAt is when it ended, zero for an item without an end, or an open one.
	At, EndedAt time.Time
	Kind        Kind
	// Engine is the engine, or the orchestrator of a run without an engine.
	Engine string

	Message          *Message
	Orchestration    *orchestrator.Summary
	Change           *Change
	Call             *Call
	Timer            *Timer
	Event            *Event
	Task             *Task
	Publication      *Publication
	Delivery         *Delivery
	Link             *Link
	History          *engine.Entry
	DeadLetter       *engine.DeadLetter
	DeadLetterChange *DeadLetterChange
	Action           *Action
}

// compare orders items by time, and those of one time by their IDs.
func (i *Item) compare(at time.Time, id string) int {
	return cmp.Or(i.At.Compare(at), cmp.Compare(i.ID, id))
}

// Where is the execution of the run in which something happened.
type Where struct {
	OrchestrationID string `json:"orchestrationId"`
	Execution       int    `json:"execution"`
}

// Failure is an error.
type Failure struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
	// Permanent means that another attempt cannot help.
	Permanent bool `json:"permanent,omitempty"`
}

// Message means that a message, or another request, has started a run.
type Message struct {
	Where
	// RequestID is the id of the request, if it has one.
	RequestID string `json:"requestId,omitempty"`
}

// Change is a change of the state of an orchestration.
type Change struct {
	Where
	// Attempt is the attempt at its work, from 1.
	Attempt int `json:"attempt"`
	// What is one of Changes.
	What   string   `json:"what"`
	Reason string   `json:"reason,omitempty"`
	Error  *Failure `json:"error,omitempty"`
}

// CallStatus is the status of a call.
type CallStatus string

// The statuses of calls. The rounds do not record which wait has received an event: it stays Awaited.
const (
	CallRunning    CallStatus = "Running"
	CallRetrying   CallStatus = "Retrying" // an attempt failed, and another one follows
	CallAwaited    CallStatus = "Awaited"
	CallCompleted  CallStatus = "Completed"
	CallFailed     CallStatus = "Failed"
	CallCanceled   CallStatus = "Canceled"
	CallUnfinished CallStatus = "Unfinished" // its execution has ended without it
)

// Call is an activity, a sub-orchestration or the wait for an event, as the rounds name and number it.
type Call struct {
	Where
	// Call is its number within the execution, from 1.
	Call   int                   `json:"call"`
	Type   orchestrator.CallKind `json:"type"`
	Name   string                `json:"name"`
	Status CallStatus            `json:"status"`
	// ChildID is the id of the called orchestration.
	ChildID string `json:"childId,omitempty"`
	// Local means that it is a local activity. Undoes is the number of the call that it compensates.
	Local  bool `json:"local,omitempty"`
	Undoes int  `json:"undoes,omitempty"`
	// Attempts are those in the rounds; none for the wait for an event.
	Attempts []Attempt `json:"attempts"`
}

// Attempt is an attempt at a call. The first one starts with the call, others when they are due.
type Attempt struct {
	Attempt int       `json:"attempt"`
	BeganAt time.Time `json:"beganAtUtc"`
	EndedAt time.Time `json:"endedAtUtc,omitzero"`
	Error   *Failure  `json:"error,omitempty"`
}

// Timer is a timer; its item ends when it fires.
type Timer struct {
	Where
	Call   int        `json:"call"`
	DueAt  time.Time  `json:"dueAtUtc"`
	Status CallStatus `json:"status"`
}

// Event is an event that a run has received.
type Event struct {
	Where
	Name     string `json:"name"`
	SignalID string `json:"signalId,omitempty"`
	// SenderID is the orchestration that sent it, "" for an outside sender.
	SenderID string `json:"senderId,omitempty"`
}

// Task is an event of a human task.
type Task struct {
	Where
	Call   int    `json:"call"`
	TaskID string `json:"taskId"`
	Name   string `json:"name"`
	// What happened: the item of a created task ends with the task.
	What tasks.EventKind `json:"what"`
	// Status is the task's status, on the item of its creation.
	Status       CallStatus `json:"status,omitempty"`
	By           string     `json:"by,omitempty"`
	ByName       string     `json:"byName,omitempty"`
	Assignee     string     `json:"assignee,omitempty"`
	AssigneeName string     `json:"assigneeName,omitempty"`
	Roles        []string   `json:"roles,omitempty"`
	Note         string     `json:"note,omitempty"`
	DueAt        time.Time  `json:"dueAtUtc,omitzero"`
}

// Publication is an event that a run has published; its item ends when the event is delivered, skipped or dead.
type Publication struct {
	Where
	TenantID  string `json:"tenantId"`
	EventID   string `json:"eventId,omitempty"`
	EventType string `json:"eventType"`
	// Status is that of the event in the outbox, "" when the outbox does not have it (yet, or no longer) or it is another
	// tenant's.
	Status     outbox.Status `json:"status,omitempty"`
	RetryCount int           `json:"retryCount,omitempty"`
	NextAt     time.Time     `json:"nextAttemptAtUtc,omitzero"`
	RevivedAt  time.Time     `json:"revivedAtUtc,omitzero"`
	SkippedBy  string        `json:"skippedBy,omitempty"`
	Error      string        `json:"error,omitempty"`
}

// Delivery is an attempt to deliver an event; the outbox keeps the latest ten.
type Delivery struct {
	TenantID    string `json:"tenantId"`
	EventID     string `json:"eventId"`
	EventType   string `json:"eventType"`
	Destination string `json:"destination,omitempty"`
	Node        string `json:"node,omitempty"`
	TookMs      int64  `json:"tookMs"`
	StatusCode  int    `json:"statusCode,omitempty"`
	Error       string `json:"error,omitempty"`
}

// Link means that one run has started another without waiting for it (Started), or has sent it an event (EventSent). A
// run that calls another is a Call.
type Link struct {
	Where
	What string `json:"what"`
	ToID string `json:"toId"`
	// Name is that of the orchestrator or of the event.
	Name string `json:"name"`
}

// DeadLetterChange is the outcome of a dead letter: Retried, Resolved or Expired.
type DeadLetterChange struct {
	RowKey string `json:"rowKey"`
	What   string `json:"what"`
	By     string `json:"by,omitempty"`
	Notes  string `json:"notes,omitempty"`
	// RetryID is the id of the retry, RetryMessageID that of its message.
	RetryID        string `json:"retryId,omitempty"`
	RetryMessageID string `json:"retryMessageId,omitempty"`
}

// Action is an outside caller's action on a run, or an attempted one: a start, an event or a command. Refusals are in
// the audit log only; actions on tasks, dead letters and events have their own items.
type Action struct {
	OrchestrationID string `json:"orchestrationId"`
	// What is the audit log's name of the action; By, ByName and ByKind are the caller, and Door the API.
	What   string `json:"what"`
	By     string `json:"by"`
	ByName string `json:"byName,omitempty"`
	ByKind string `json:"byKind,omitempty"`
	Door   string `json:"door,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Outcome is Done, Failed, or Unknown if the process ended before it recorded one; Error is the reason of a failure.
	Outcome audit.Outcome `json:"outcome"`
	Error   string        `json:"error,omitempty"`
}
