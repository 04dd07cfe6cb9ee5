package orchestrator

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/tables"
)

// Start says which orchestration to start or resume.
type Start struct {
	// ID identifies the orchestration, at most 400 bytes of UTF-8.
	ID string
	// Orchestrator is the name of the registered function, Input its argument as JSON.
	Orchestrator string
	Input        json.RawMessage
	// Version is the registered version that the first execution takes, "" for the latest. ErrUnknownOrchestrator says that
	// it is not registered.
	Version string
	// CorrelationID is passed to everything that the orchestration starts. It is part of the identity of the
	// orchestration: another correlation id under the same id is ErrConflict. It has at most MaxName bytes of UTF-8.
	CorrelationID string
	// TenantID is the tenant that the orchestration belongs to, at most MaxTenantID bytes of UTF-8, "" for the platform
	// itself. Ids of tenants are compared without case. Whatever the orchestration calls and starts, and its human tasks
	// that name no tenant, belong to the same tenant. A run keeps the tenant with which it began: a Start for another
	// tenant is ErrConflict or, by Runtime.Start, not the same start repeated; one without a tenant is the platform's,
	// which may repeat anybody's.
	TenantID string
	// Carry is copied to every Outcome, up to 48 KiB: whatever the caller needs when the end is reported by a signal.
	Carry []byte
	// Same says whether the run that has the id and the correlation id, with this Carry, is the one that is meant. If not,
	// the Start is ErrOtherWork, and changes nothing. nil means that the ids tell, and for Runtime.Start the input.
	Same func(carry []byte) bool
	// Once says that Runtime.Start starts nothing while the run that Same means is active or after it has completed, whatever Reuse
	// says.
	Once bool
	// Instead says whether this Start takes the place of the run that has the id and the correlation id, with this Carry. If so, and
	// if that run has failed for good, the next execution begins with the Input of this Start, and keeps none of the results; a run that
	// goes on, or has ended otherwise, is judged by Same. nil takes the place of none. It is for Run.
	Instead func(carry []byte) bool
	// Timeout bounds each execution: one that has not ended by then fails with the code TimedOut, whatever it waits
	// for. 0 sets no bound.
	Timeout time.Duration
	// WillRetry says that the caller repeats the same Start when the orchestration fails with an error that another
	// attempt can fix: until then it is Retrying, not Failed. GiveUp ends that.
	WillRetry bool
	// Trace is the trace context of whoever starts the orchestration, as Config.Tracer understands it (W3C traceparent); "" for
	// none.
	Trace string
	// Parent is the id of the calling orchestration, "" for none.
	Parent string
	// Reference is the business reference; optional.
	Reference *Reference
	// Reuse says what Runtime.Start does when the id is taken. RequestID makes a repeated start the same start. Run
	// supports only ReuseEnded of these: runs with different correlation ids then share the id, one after the other.
	Reuse     Reuse
	RequestID string
	// Event comes with a start by Runtime.Start, in the same transaction. An orchestration that has the id and has not ended gets the event
	// instead of being started. nil is none.
	Event *StartEvent
	// deliver says that the Start is for a signal: the orchestration must exist.
	deliver bool
	// call is the parent's call that it is for, nil for none. errors are the error types that the parent can decode. named says that
	// WithID gave the id.
	call   *callRef
	errors []string
	named  bool
	// Resume is a hint that the orchestration exists. It saves a transaction when it is right and costs one when it is
	// wrong.
	Resume bool
}

// StartEvent is an event that comes with a start.
type StartEvent struct {
	// Name is the name of the event, 1 to 1,024 bytes. Required.
	Name string
	// Data is its value as JSON; nil is null.
	Data json.RawMessage
	// ID is that of the event: a start with the same one is repeated, and changes nothing. "" is Start.RequestID, or a new one.
	ID string
}

// maxCarry bounds Start.Carry, in bytes.
const maxCarry = 48 << 10

// MaxTenantID bounds the id of a tenant, in bytes.
const MaxTenantID = 512

// MaxName bounds the name of an orchestrator, of one of its versions and of an activity, and a correlation id, in bytes of
// UTF-8.
const MaxName = 1 << 10

// maxEscapedID bounds an id in its escaped form: 512 units, less the prefix of ids in the index of the catalog.
const maxEscapedID = 510

// validID reports whether table keys and blob names can be made of an id.
func validID(id string) bool {
	return id != "" && len(id) <= 400 && len(tables.EscapeKey(id)) <= maxEscapedID && utf8.ValidString(id)
}

// checkName checks the name of an orchestrator or activity.
func checkName(kind, name string) error {
	switch {
	case name == "" || !utf8.ValidString(name):
		return fmt.Errorf("%s needs a name, in UTF-8", kind)
	case len(name) > MaxName:
		return fmt.Errorf("the name %.40q... of %s has %d bytes, at most %d are allowed: shorten it", name, kind, len(name), MaxName)
	default:
		return nil
	}
}

func (s Start) validate() error {
	switch {
	case !validID(s.ID):
		return fmt.Errorf("the orchestration id needs 1 to 400 bytes of UTF-8, and up to %d as a key, not %d and %d", maxEscapedID, len(s.ID), len(tables.EscapeKey(s.ID)))
	case len(s.TenantID) > MaxTenantID || !utf8.ValidString(s.TenantID) || strings.ContainsRune(s.TenantID, 0):
		return fmt.Errorf("the tenant id of orchestration %s needs up to %d bytes of UTF-8 without NUL, it has %d", s.ID, MaxTenantID, len(s.TenantID))
	case len(s.CorrelationID) > MaxName || !utf8.ValidString(s.CorrelationID):
		return fmt.Errorf("the correlation id of orchestration %s needs up to %d bytes of UTF-8, it has %d: use a shorter one, such as a hash in hex",
			s.ID, MaxName, len(s.CorrelationID))
	case len(s.Carry) > maxCarry:
		return fmt.Errorf("orchestration %s carries %d bytes, at most %d: %w", s.ID, len(s.Carry), maxCarry, tables.ErrTooLarge)
	case !json.Valid(s.Input) || !utf8.Valid(s.Input):
		return fmt.Errorf("the input of orchestration %s is not JSON in UTF-8", s.ID)
	}
	if err := storable(s.Input); err != nil {
		return fmt.Errorf("the input of orchestration %s: %w", s.ID, err)
	}
	if e := s.Event; e != nil {
		if err := e.validate(); err != nil {
			return fmt.Errorf("the event for orchestration %s: %w", s.ID, err)
		}
	}
	return s.Reference.validate()
}
