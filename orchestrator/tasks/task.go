package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/tenant"
)

// Test for these errors with errors.Is.
var (
	// ErrNotFound: the task does not exist, or belongs to another tenant.
	ErrNotFound = errors.New("no such task")
	// ErrForbidden: the person lacks the permission.
	ErrForbidden = errors.New("not allowed")
	// ErrConflict: the state of the task does not allow the change; a *ConflictError names the person who was faster.
	ErrConflict = errors.New("the task is somebody else's, or has ended")
	// ErrChanged: the task has changed since the given ETag.
	ErrChanged = errors.New("the task has changed")
	// ErrInvalid: a field of a task is out of its limits.
	ErrInvalid = errors.New("invalid")
	// ErrOutput: the task's form does not allow the answer.
	ErrOutput = errors.New("invalid output")
)

// The limits of a task, in bytes.
const (
	MaxName    = 200
	MaxPerson  = 256 // of the name of a person, role or tenant
	MaxRoles   = 20
	MaxPayload = 64 << 10
	MaxForm    = 16 << 10
	MaxOutput  = 64 << 10
	MaxNote    = 2000
)

// Status is the state of a task.
type Status string

// A task is Created without an assignee, or Assigned, and ends as Completed or Canceled.
const (
	Created   Status = "Created"
	Assigned  Status = "Assigned"
	Completed Status = "Completed"
	Canceled  Status = "Canceled"
)

// Ref identifies a task.
type Ref struct {
	// Orchestration is the id of the waiting orchestration. ID is the waiting token of its wait.
	Orchestration, ID string
}

// String returns the reference in errors.
func (r Ref) String() string { return r.Orchestration + "/" + r.ID }

// Task is a human task in its current state. Times are UTC, in microseconds; zero means none.
type Task struct {
	Ref
	Name          string
	Orchestrator  string
	CorrelationID string
	// TenantID is the tenant that the task belongs to, "" for the platform itself.
	TenantID string
	Status   Status
	// Roles are the effective roles: people with one of them may claim the task. Without roles, everybody may.
	Roles []string
	// Assignee is the id of the assigned person, AssigneeName the name if known.
	Assignee, AssigneeName string
	// Payload is shown to the assignee. Form is a JSON schema of the answer; nil for none.
	Payload, Form json.RawMessage
	CreatedAt     time.Time
	DueAt         time.Time
	ChangedAt     time.Time
	// Seq counts the events, without the end.
	Seq int
	// End is the end of the task, nil while it is open.
	End *End
	// Events is its history, oldest first; lists leave it out.
	Events []Event
	// ETag changes with the task.
	ETag string
}

// Open reports whether the task has not ended.
func (t Task) Open() bool { return t.End == nil }

// End describes the end of a task.
type End struct {
	Status Status
	// By is the id of the person, ByName the name, for reading.
	By, ByName string
	At         time.Time
	Note       string
	// Output is the answer of a completed task.
	Output json.RawMessage
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events (persistence document, section 2.3).
const (
	EventCreated    EventKind = "created"
	EventAssigned   EventKind = "assigned"
	EventReleased   EventKind = "released"
	EventReassigned EventKind = "reassigned"
	EventEscalated  EventKind = "escalated"
	EventCompleted  EventKind = "completed"
	EventCancelled  EventKind = "cancelled"
)

// Event is one entry of a task's history.
type Event struct {
	Kind EventKind
	// By is the id of the person, "" for the orchestration, and ByName the name, for reading.
	By, ByName string
	At         time.Time
	// Assignee, AssigneeName and Roles are those after the event.
	Assignee, AssigneeName string
	Roles                  []string
	Note                   string
}

// ConflictError is the reason why a task cannot be changed: it has Status, set by By, whose name is ByName, since At.
type ConflictError struct {
	Ref        Ref
	Status     Status
	By, ByName string
	At         time.Time
}

// Error names the task and the person who was faster.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("task %s is %s by %q since %s", e.Ref, strings.ToLower(string(e.Status)), e.By, e.At.Format(time.RFC3339))
}

// Is lets errors.Is find ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// conflict returns the error for a change that the current state does not allow.
func (t Task) conflict() error {
	if t.End != nil {
		return &ConflictError{t.Ref, t.End.Status, t.End.By, t.End.ByName, t.End.At}
	}
	return &ConflictError{t.Ref, t.Status, t.Assignee, t.AssigneeName, t.ChangedAt}
}

// Person reads or changes a task.
type Person struct {
	// ID identifies the person: it does not change and is not reused. Name is for display.
	ID, Name string
	Roles    []string
	// TenantID restricts the person to the tasks of one tenant; "" does not.
	TenantID string
	// All permits every change of every task, as a function key does.
	All bool
}

// Is compares ids, without case.
func (p Person) Is(id string) bool { return id != "" && strings.EqualFold(p.ID, id) }

// mayClaim reports whether the person has one of the task's roles.
func (p Person) mayClaim(t Task) bool {
	return p.All || len(t.Roles) == 0 || slices.ContainsFunc(t.Roles, func(role string) bool {
		return slices.ContainsFunc(p.Roles, func(has string) bool { return strings.EqualFold(has, role) })
	})
}

// released reports whether the last event of the task is its release by the person.
func (p Person) released(t Task) bool {
	last := len(t.Events) - 1
	return last >= 0 && t.Events[last].Kind == EventReleased && p.Is(t.Events[last].By)
}

// Concerned reports whether the person has one of the task's roles or is its assignee.
func (p Person) Concerned(t Task) bool { return p.mayClaim(t) || p.Is(t.Assignee) }

// Sees reports whether the task does not belong to another tenant.
func (p Person) Sees(t Task) bool {
	return tenant.Sees(p.TenantID, t.TenantID)
}

// Validate checks the limits of a task that is to be created, and compiles its form. Errors are ErrInvalid.
func (t Task) Validate() error {
	switch {
	case t.Name == "" || len(t.Name) > MaxName || !utf8.ValidString(t.Name):
		return fmt.Errorf("%w: a task has a name of 1 to %d bytes, not %d", ErrInvalid, MaxName, len(t.Name))
	case len(t.Roles) > MaxRoles:
		return fmt.Errorf("%w: a task has at most %d roles, not %d", ErrInvalid, MaxRoles, len(t.Roles))
	case len(t.Payload) > MaxPayload || len(t.Form) > MaxForm:
		return fmt.Errorf("%w: the payload of a task has at most %d bytes, and its form %d, not %d and %d", ErrInvalid, MaxPayload, MaxForm, len(t.Payload), len(t.Form))
	}
	if err := errors.Join(payload.Check(t.Payload), payload.Check(t.Form)); err != nil {
		return fmt.Errorf("%w: the payload or the form of a task is %w", ErrInvalid, err)
	}
	for _, name := range append([]string{t.Assignee, t.TenantID}, t.Roles...) {
		if err := validName(name); err != nil {
			return err
		}
	}
	if slices.Contains(t.Roles, "") {
		return fmt.Errorf("%w: a role has no name", ErrInvalid)
	}
	_, err := compile(t.Form)
	return err
}

func validName(name string) error {
	if len(name) > MaxPerson || !utf8.ValidString(name) {
		return fmt.Errorf("%w: the name of a person, role or tenant has at most %d bytes of UTF-8, not %d", ErrInvalid, MaxPerson, len(name))
	}
	return nil
}
