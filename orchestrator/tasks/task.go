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
)

// These errors are told apart with errors.Is.
var (
	// ErrNotFound: there is no such task, or it is another tenant's.
	ErrNotFound = errors.New("no such task")
	// ErrForbidden: the person may not do that to the task.
	ErrForbidden = errors.New("not allowed")
	// ErrConflict: the task is not in a state for that; a *ConflictError says who was faster.
	ErrConflict = errors.New("the task is somebody else's, or has ended")
	// ErrChanged: the task is not as the ETag says any more.
	ErrChanged = errors.New("the task has changed")
	// ErrInvalid: what a task is to hold breaks a limit.
	ErrInvalid = errors.New("invalid")
	// ErrOutput: the answer is not one that the task's form allows.
	ErrOutput = errors.New("invalid output")
)

// The limits of a task, in bytes.
const (
	MaxName    = 200
	MaxPerson  = 256 // of the name of a person, a role and a tenant
	MaxRoles   = 20
	MaxPayload = 64 << 10
	MaxForm    = 16 << 10
	MaxOutput  = 64 << 10
	MaxNote    = 2000
)

// Status is where a task stands.
type Status string

// A task is created without an assignee, or assigned, and ends completed or canceled.
const (
	Created   Status = "Created"
	Assigned  Status = "Assigned"
	Completed Status = "Completed"
	Canceled  Status = "Canceled"
)

// Ref addresses a task.
type Ref struct {
	// Orchestration is the id of the one that waits, ID the waiting token of its wait.
	Orchestration, ID string
}

// String is the address as errors have it.
func (r Ref) String() string { return r.Orchestration + "/" + r.ID }

// Task is a task as it stands. Times are UTC, in microseconds; zero means none.
type Task struct {
	Ref
	Name          string
	Orchestrator  string
	CorrelationID string
	// TenantID is whose task it is, "" for the platform's own.
	TenantID string
	Status   Status
	// Roles are the effective ones: who has one of them may take the task. None: everybody may.
	Roles    []string
	Assignee string
	// Payload is what the person is shown, Form a JSON schema of the answer; nil for none.
	Payload, Form json.RawMessage
	CreatedAt     time.Time
	DueAt         time.Time
	ChangedAt     time.Time
	// Seq counts the events, the end apart.
	Seq int
	// End is how it ended, nil while it is open.
	End *End
	// Events are its history, oldest first; a list leaves them out.
	Events []Event
	// ETag changes with the task.
	ETag string
}

// Open says that the task has not ended.
func (t Task) Open() bool { return t.End == nil }

// End is how a task ended.
type End struct {
	Status Status
	By     string
	At     time.Time
	Note   string
	// Output is the answer of a completed one.
	Output json.RawMessage
}

// EventKind says what happened to a task.
type EventKind string

// What happens to tasks (persistence document, section 2.3).
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
	// By is who did it, "" for the orchestration.
	By string
	At time.Time
	// Assignee and Roles are those from then on.
	Assignee string
	Roles    []string
	Note     string
}

// ConflictError says why a task cannot be changed so: it is Status, by By since At.
type ConflictError struct {
	Ref    Ref
	Status Status
	By     string
	At     time.Time
}

// Error names the task, and who was faster.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("task %s is %s by %q since %s", e.Ref, strings.ToLower(string(e.Status)), e.By, e.At.Format(time.RFC3339))
}

// Is makes it an ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// conflict is what the task as it stands says to who wants to change it.
func (t Task) conflict() error {
	if t.End != nil {
		return &ConflictError{t.Ref, t.End.Status, t.End.By, t.End.At}
	}
	return &ConflictError{t.Ref, t.Status, t.Assignee, t.ChangedAt}
}

// Person is who wants something of a task.
type Person struct {
	Name  string
	Roles []string
	// TenantID restricts the person to the tasks of one tenant; "" does not.
	TenantID string
	// All lets the person do everything to every task, as the holder of a function key may.
	All bool
}

// Is compares names as directories do: without case.
func (p Person) Is(name string) bool { return name != "" && strings.EqualFold(p.Name, name) }

// mayClaim says that the person is among those whom the task is for.
func (p Person) mayClaim(t Task) bool {
	return p.All || len(t.Roles) == 0 || slices.ContainsFunc(t.Roles, func(role string) bool {
		return slices.ContainsFunc(p.Roles, func(has string) bool { return strings.EqualFold(has, role) })
	})
}

// Sees says that the task is no other tenant's.
func (p Person) Sees(t Task) bool {
	return p.TenantID == "" || strings.EqualFold(p.TenantID, t.TenantID)
}

// Validate checks a task that is to be created against the limits and compiles its form. Errors are ErrInvalid.
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
