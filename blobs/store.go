package blobs

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// These errors can be returned by every Store. Test for them with errors.Is. They are the same values in the packages
// tables, queues and blobs.
var (
	// ErrNotFound: no such blob, or no such container.
	ErrNotFound = storage.ErrNotFound
	// ErrPrecondition: the blob changed since its ETag was read, or is there although it should not be. It may be by one's
	// own request: the adapter repeats one whose answer was lost. Read the blob to know.
	ErrPrecondition = storage.ErrPrecondition
	// ErrTooLarge: the blob exceeds MaxSize; repeating it cannot help.
	ErrTooLarge = storage.ErrTooLarge
	// ErrInvalid: a name that the service does not take; repeating it cannot help.
	ErrInvalid = storage.ErrInvalid
	// ErrDenied: the service refuses the credential; nothing was applied.
	ErrDenied = storage.ErrDenied
	// ErrThrottled: the service is busy and the operation was not applied; repeat it later.
	ErrThrottled = storage.ErrThrottled
	// ErrOutcomeUnknown: no answer; the operation may or may not have been applied. All operations but PutIf may be repeated.
	ErrOutcomeUnknown = storage.ErrOutcomeUnknown
)

// MaxSize is the largest blob of Put and Get, in bytes: both hold it in memory.
const MaxSize = 64 << 20

// Store is Azure Blob Storage as this program uses it: whole small blobs. Implementations are safe for concurrent use.
// They neither keep nor share the data that goes in and comes out. A container name has 3 to 63 of a-z, 0-9 and single
// hyphens between them; a blob name has 1 to 1,024 UTF-16 units, may have slashes (no empty, "." or ".." segment), and
// holds no backslash and no control character.
type Store interface {
	// CreateContainer makes sure that a container exists.
	CreateContainer(ctx context.Context, container string) error
	// Put writes a blob, replacing one that is there.
	Put(ctx context.Context, container, name string, data []byte) error
	// PutIf writes a blob if its ETag is still this one, "" for a blob that must not be there yet, or gives
	// ErrPrecondition. The ETags of what Get has read and PutIf has written come by WithTold.
	PutIf(ctx context.Context, container, name string, data []byte, etag string) error
	// Get reads a blob, or ErrNotFound.
	Get(ctx context.Context, container, name string) ([]byte, error)
	// Delete removes a blob; a missing one is not an error.
	Delete(ctx context.Context, container, name string) error
	// List gives one page of the names that begin with prefix, ascending: up to 1,000, and next, which continues the
	// list, or "" on the last page. A page may hold fewer names, even none, and still have a next; All walks over that.
	// What changes between two pages is seen or not; nothing is seen twice. The prefix is the beginning of a blob name,
	// at any character; "" gives all. The continuation is the next of the page before, valid with the same container and
	// prefix only, or "" for the first page. A missing container is an ErrNotFound.
	//
	// Names compare by their characters' code points. Where one above U+FFFF stands against one of U+E000 to U+FFFF, the
	// order is the store's own.
	List(ctx context.Context, container, prefix, continuation string) (names []string, next string, err error)
	// ListOld looks at one page of the blobs whose names begin with prefix, in the order and with the promises of List, and
	// gives those that were written last before a time. The service counts in seconds: a blob is up to one older than it was
	// written. The continuations are its own.
	ListOld(ctx context.Context, container, prefix string, before time.Time, continuation string) (old []Version, next string, err error)
	// DeleteVersion removes a blob that is still that version. One that was written since, or is gone, is an
	// ErrPrecondition; so may be one that a try removed whose answer was lost.
	DeleteVersion(ctx context.Context, container string, v Version) error
}

// Version is a blob as one Put has left it.
type Version struct {
	Name string
	// ETag is no other Put's.
	ETag string
}
