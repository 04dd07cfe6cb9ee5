package poller

import (
	"context"
	"time"
)

// State is a version of a state document in a Store.
type State struct {
	// Data is the text of the document.
	Data []byte
	// ETag names the version; it is opaque, and "" means that there is no document.
	ETag string
	// Time is the clock of the store when it answered, in UTC; it may be truncated to the second.
	Time time.Time
}

// Store keeps one state document a poller. Implementations are safe for concurrent use; package pollertest holds them to
// what is said here. Besides the errors named, a call may fail without having been applied.
type Store interface {
	// Create makes what the store needs, where it is missing.
	Create(ctx context.Context) error
	// Load reads a document, or ErrNotFound; then State has the Time nevertheless.
	Load(ctx context.Context, poller string) (State, error)
	// Swap writes a document over the version with this ETag, "" for one that must not be there yet, and gives the new
	// version. The errors are ErrChanged, and ErrOutcomeUnknown when nobody knows.
	Swap(ctx context.Context, poller string, data []byte, etag string) (State, error)
	// List gives the names of the pollers that have a document, ascending.
	List(ctx context.Context) ([]string, error)
}
