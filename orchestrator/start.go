package orchestrator

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/tables"
)

// Start says which orchestration to run.
type Start struct {
	// ID identifies the orchestration, at most 400 bytes of UTF-8.
	ID string
	// Orchestrator is the name of the registered function, Input its argument as JSON.
	Orchestrator string
	Input        json.RawMessage
	// CorrelationID is handed to everything that the orchestration starts. It is part of its identity: another one under
	// the same id is ErrConflict.
	CorrelationID string
	// Carry is handed on to every Outcome, up to 48 KiB: what the caller needs to settle an end that comes by a signal.
	Carry []byte
	// Timeout bounds each execution: one that has not ended then fails with the code TimedOut, wherever it waits. 0 does
	// not.
	Timeout time.Duration
	// WillRetry says that whoever starts the orchestration starts it again, by the same Start, when it fails in a way that
	// another attempt can mend: until then it is Retrying, not Failed. GiveUp ends that.
	WillRetry bool
	// Parent is the id of the orchestration that calls, "" for none.
	Parent string
	// Reference is what the business calls what the orchestration works on; optional.
	Reference *Reference
	// Reuse says what Runtime.Start does when the id is taken, and RequestID makes it the same start when it is repeated.
	// Of these, Run knows ReuseEnded only: runs with different correlation ids then share the id, one after the other.
	Reuse     Reuse
	RequestID string
	// deliver says that the orchestration has to exist: a signal wakes it.
	deliver bool
	// call is the call of the Parent that it is for, nil for none, and errors are the types of errors that it can read.
	call   *callRef
	errors []string
	// Resume is a hint that the orchestration exists. It saves a transaction when right and costs one when wrong.
	Resume bool
}

// maxCarry bounds Start.Carry, in bytes.
const maxCarry = 48 << 10

// maxEscapedID bounds an id as keys have it: 512 units, less the prefix that it has in the index of lists.
const maxEscapedID = 510

// validID says whether table keys and blob names can be made of an id.
func validID(id string) bool {
	return id != "" && len(id) <= 400 && len(tables.EscapeKey(id)) <= maxEscapedID && utf8.ValidString(id)
}

func (s Start) validate() error {
	switch {
	case !validID(s.ID):
		return fmt.Errorf("the orchestration id needs 1 to 400 bytes of UTF-8, and up to %d as a key, not %d and %d", maxEscapedID, len(s.ID), len(tables.EscapeKey(s.ID)))
	case len(s.Carry) > maxCarry:
		return fmt.Errorf("orchestration %s carries %d bytes, at most %d: %w", s.ID, len(s.Carry), maxCarry, tables.ErrTooLarge)
	case !json.Valid(s.Input) || !utf8.Valid(s.Input):
		return fmt.Errorf("the input of orchestration %s is not JSON in UTF-8", s.ID)
	}
	if err := storable(s.Input); err != nil {
		return fmt.Errorf("the input of orchestration %s: %w", s.ID, err)
	}
	return s.Reference.validate()
}
