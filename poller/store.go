package poller

import (
	"context"
	"time"
)

// State is a version of a state document in a Store.
type State struct {
	// Data is the text of the document.
	Data []byte
	// ETag identifies the version; it is opaque, and "" means that no document exists.
	ETag string
	// Time is the store's clock at its answer, in UTC; it may be truncated to the second.
	Time time.Time
}

// Store keeps one state document for each poller. Implementations are safe for concurrent use; package pollertest tests
// these promises. Besides the named errors, a call may fail without having been applied.
type Store interface {
	// Create creates the store's resources if they are missing.
	Create(ctx context.Context) error
	// Load reads a document. With ErrNotFound, State still has the Time.
	Load(ctx context.Context, poller string) (State, error)
	// Swap replaces the version of a document that has this ETag, "" for a document that must not exist yet, and returns
	// the new version. The errors are ErrChanged, and ErrOutcomeUnknown when the outcome is unknown.
	Swap(ctx context.Context, poller string, data []byte, etag string) (State, error)
	// List returns the names of the pollers with a document, ascending.
	List(ctx context.Context) ([]string, error)
}
