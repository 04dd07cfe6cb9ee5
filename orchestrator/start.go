package orchestrator

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/tables"
)

// Start identifies the orchestration to start or resume.
type Start struct {
	// ID identifies the orchestration, at most 400 bytes of UTF-8.
	ID string
	// Orchestrator is the name of the registered function, Input its argument as JSON.
	Orchestrator string
	Input        json.RawMessage
	// Version is the registered version that the first execution takes, "" for the latest. If it is not registered,
	// the error is ErrUnknownOrchestrator.
	Version string
	// CorrelationID is passed to everything that the orchestration starts. It is part of the identity of the
	// orchestration: another correlation id under the same id is ErrConflict. It has at most MaxName bytes of UTF-8.
	CorrelationID string
	// TenantID is the tenant that the orchestration belongs to, at most MaxTenantID bytes of UTF-8, "" for the
	// platform itself. Tenant ids are compared without case. Everything that the orchestration calls and starts, and
	// its human tasks without a tenant, belong to the same tenant. A run keeps the tenant with which it began. A Start
	// for another tenant is ErrConflict or, in Runtime.Start, a different start. A Start without a tenant is the
	// platform's, which may repeat any tenant's.
	TenantID string
	// Carry is copied to every Outcome, up to 48 KiB: data that the caller needs when a signal reports the end.
	Carry []byte
	// Same reports whether the run with the id and the correlation id, which has this Carry, is the requested one. If
	// not, the Start is ErrOtherWork, and changes nothing. If Same is nil, the ids decide, and for Runtime.Start also
	// the input.
	Same func(carry []byte) bool
	// Once makes Runtime.Start start nothing while the run that Same accepts is active or after it has completed,
	// regardless of Reuse.
	Once bool
	// Instead reports whether this Start replaces the run with the id and the correlation id, which has this Carry. If
	// so, and if that run has failed for good, the next execution begins with the Input of this Start and keeps no
	// results. A run that is active, or has ended otherwise, is judged by Same. If Instead is nil, no run is replaced.
	// It is for Run.
	Instead func(carry []byte) bool
	// Timeout bounds each execution: one that has not ended by then fails with the code TimedOut, even while it waits.
	// 0 sets no bound.
	Timeout time.Duration
	// WillRetry announces that the caller repeats the same Start when the orchestration fails with an error that
	// another attempt can fix. Until then it is Retrying, not Failed. GiveUp ends that.
	WillRetry bool
	// Trace is the starter's trace context, as Config.Tracer understands it (W3C traceparent); "" for none.
	Trace string
	// Parent is the id of the calling orchestration, "" for none.
	Parent string
	// Reference is the business reference; optional.
	Reference *Reference
	// Reuse is the policy of Runtime.Start when the id is taken. RequestID makes a repeated start the same start. Run
	// supports only ReuseEnded of these: runs with different correlation ids then share the id, one after the other.
	Reuse     Reuse
	RequestID string
	// Event comes with a start by Runtime.Start, in the same transaction. If an orchestration with the id has not
	// ended, it gets the event and is not started again. nil is none.
	Event *StartEvent
	// deliver marks a Start for a signal: the orchestration must exist.
	deliver bool
	// call is the parent's call that started it, nil for none. errors are the error types that the parent can decode.
	// named records that WithID gave the id.
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
	// ID is the event's id: a start with the same one is a repeat, and changes nothing. "" is Start.RequestID, or a
	// new one.
	ID string
}

// maxCarry bounds Start.Carry, in bytes.
const maxCarry = 48 << 10

// MaxTenantID bounds the id of a tenant, in bytes.
const MaxTenantID = 512

// MaxName bounds the names of orchestrators, their versions and activities, and correlation ids, in bytes of UTF-8.
const MaxName = 1 << 10

// maxEscapedID bounds an id in its escaped form: 512 units, less the prefix of ids in the index of the catalog.
const maxEscapedID = 510

// validID reports whether an id fits table keys and blob names.
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
