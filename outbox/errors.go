package outbox

import (
	"errors"
	"fmt"
	"time"
)

// These errors can occur when a message is added.
var (
	// ErrInvalid: an id, payload, option or filter is not valid; repeating the call cannot help.
	ErrInvalid = errors.New("invalid")
	// ErrPayloadTooLarge: the payload has more than MaxPayload bytes; the text says how many.
	ErrPayloadTooLarge = errors.New("payload too large")
)

// These errors can occur when a message is delivered or worked on.
var (
	// ErrMisconfigured: nothing was sent, because what only the operator of this program can give is missing: a Route, or what a
	// Transport needs, which wraps it then. The message waits, and keeps its retries.
	ErrMisconfigured = errors.New("not configured")
	// ErrNoRoute: no Route matches the event. It is an ErrMisconfigured.
	ErrNoRoute = fmt.Errorf("%w: no route", ErrMisconfigured)
	// ErrNotFound: there is no such message.
	ErrNotFound = errors.New("no such message")
	// ErrClaimed: a dispatcher is delivering the message; try again when its claim ends. A *ClaimedError says when.
	ErrClaimed = errors.New("being delivered")
	// ErrState: the message's status does not allow it.
	ErrState = errors.New("not possible in this status")
	// ErrToken: the continuation does not belong to this filter.
	ErrToken = errors.New("continuation not valid")
	// ErrSchemaVersion: a newer version of this program wrote the row, which is left alone. A *VersionError names it.
	ErrSchemaVersion = errors.New("schema version not known")
	// ErrCorrupt: a row holds what this program does not write.
	ErrCorrupt = errors.New("row is damaged")
	// ErrBusy: others changed the same rows again and again; try later.
	ErrBusy = errors.New("too much contention")
)

// ClaimedError is an ErrClaimed with the end of the claim.
type ClaimedError struct {
	ID    string
	Until time.Time
}

// Error says when to try again.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("message %s: %v until %s", clip(e.ID, 64), ErrClaimed, e.Until.Format(time.RFC3339))
}

// Unwrap gives ErrClaimed.
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

// Unwrap gives ErrSchemaVersion.
func (e *VersionError) Unwrap() error { return ErrSchemaVersion }
