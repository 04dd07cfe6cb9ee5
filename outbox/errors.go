package outbox

import (
	"errors"
	"fmt"
	"time"
)

// These errors can occur when a message is added.
var (
	// ErrInvalid means that an id, payload, option or filter is invalid. Do not retry.
	ErrInvalid = errors.New("invalid")
	// ErrPayloadTooLarge means that the payload has more than MaxPayload bytes; the text has its size.
	ErrPayloadTooLarge = errors.New("payload too large")
)

// These errors can occur when a message is delivered or changed.
var (
	// ErrMisconfigured means that nothing was sent, because only the operator can provide the missing part: a Route, or a
	// setting of a Transport, which wraps it then. The message waits, and keeps its retries.
	ErrMisconfigured = errors.New("not configured")
	// ErrNoRoute means that no Route matches the event. It is an ErrMisconfigured.
	ErrNoRoute = fmt.Errorf("%w: no route", ErrMisconfigured)
	// ErrNotFound means that the message does not exist.
	ErrNotFound = errors.New("no such message")
	// ErrClaimed means that a dispatcher is delivering the message; try again when its claim ends. A *ClaimedError has
	// that time.
	ErrClaimed = errors.New("being delivered")
	// ErrState means that the message's status does not allow the action.
	ErrState = errors.New("not possible in this status")
	// ErrToken means that the continuation does not belong to this filter.
	ErrToken = errors.New("continuation not valid")
	// ErrSchemaVersion means that a newer version of this program wrote the row, which is left alone. A *VersionError
	// names it.
	ErrSchemaVersion = errors.New("schema version not known")
	// ErrCorrupt means that a row has contents that this program does not write.
	ErrCorrupt = errors.New("row is damaged")
	// ErrBusy means that the same rows changed concurrently too often; try later.
	ErrBusy = errors.New("too much contention")
)

// ClaimedError is an ErrClaimed with the end of the claim.
type ClaimedError struct {
	ID    string
	Until time.Time
}

// Error returns when to try again.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("message %s: %v until %s", clip(e.ID, 64), ErrClaimed, e.Until.Format(time.RFC3339))
}

// Unwrap returns ErrClaimed.
func (e *ClaimedError) Unwrap() error { return ErrClaimed }

// VersionError is an ErrSchemaVersion with the row and its version.
type VersionError struct {
	Row     string
	Version int64
}

// Error names the row and both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("row %s has schema version %d, this program knows up to %d: %v", clip(e.Row, 64), e.Version, schemaVersion, ErrSchemaVersion)
}

// Unwrap returns ErrSchemaVersion.
func (e *VersionError) Unwrap() error { return ErrSchemaVersion }
