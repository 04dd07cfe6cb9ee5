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
	// ErrPrecondition: the blob has changed since its ETag was read, or exists although it should not. This may be the
	// result of the caller's own request, because the adapter repeats one whose answer was lost. Read the blob to find
	// out.
	ErrPrecondition = storage.ErrPrecondition
	// ErrTooLarge: the blob exceeds MaxSize; repeating it cannot help.
	ErrTooLarge = storage.ErrTooLarge
	// ErrInvalid: the service does not accept this name; repeating it cannot help.
	ErrInvalid = storage.ErrInvalid
	// ErrDenied: the service refuses the credential; nothing was applied.
	ErrDenied = storage.ErrDenied
	// ErrThrottled: the service is busy and the operation was not applied; repeat it later.
	ErrThrottled = storage.ErrThrottled
	// ErrOutcomeUnknown: no answer; the operation may or may not have been applied. All operations but PutIf may be repeated.
	ErrOutcomeUnknown = storage.ErrOutcomeUnknown
)

// MaxSize is the size of the largest blob for Put and Get, in bytes: both hold it in memory.
const MaxSize = 64 << 20

// Store is Azure Blob Storage as this program uses it: small blobs, read and written as a whole. Implementations are
// safe for concurrent use. They neither keep nor share the data of arguments and results. A container name has 3 to 63
// of a-z, 0-9 and single hyphens between them. A blob name has 1 to 1,024 UTF-16 units, may have slashes (no empty, "."
// or ".." segment), and holds no backslash and no control character.
type Store interface {
	// CreateContainer creates a container if it is missing.
	CreateContainer(ctx context.Context, container string) error
	// Put writes a blob, replacing an existing one.
	Put(ctx context.Context, container, name string, data []byte) error
	// PutIf writes a blob if it still has this ETag, "" for a blob that must not exist yet; otherwise the error is
	// ErrPrecondition. WithCaptureResponse returns the ETags of what Get has read and PutIf has written.
	PutIf(ctx context.Context, container, name string, data []byte, etag string) error
	// Get reads a blob. The error may be ErrNotFound.
	Get(ctx context.Context, container, name string) ([]byte, error)
	// Delete deletes a blob; a missing one is not an error.
	Delete(ctx context.Context, container, name string) error
	// List returns one page of the names that begin with prefix, ascending: up to 1,000, and next, which continues the
	// list, or "" on the last page. A page may hold fewer names, even none, and still have a next; All handles that.
	// Changes between two pages may be seen or not; nothing is seen twice. The prefix is the beginning of a blob name,
	// up to any character; "" selects all. The continuation is the next of the page before, valid with the same
	// container and prefix only, or "" for the first page. A missing container is an ErrNotFound.
	//
	// Names are compared by their characters' code points. The order of a character above U+FFFF and one from U+E000 to
	// U+FFFF depends on the store.
	List(ctx context.Context, container, prefix, continuation string) (names []string, next string, err error)
	// ListOld looks at one page of the blobs whose names begin with prefix, in the order and with the promises of List,
	// and returns those that were last written before a time. The service counts in seconds: a blob may appear up to a
	// second older than it is. Its continuations are not those of List.
	ListOld(ctx context.Context, container, prefix string, before time.Time, continuation string) (old []Version, next string, err error)
	// DeleteVersion deletes a blob that still has that version. If it was written since, or is gone, the error is
	// ErrPrecondition; this may also be the result of an earlier try whose answer was lost.
	DeleteVersion(ctx context.Context, container string, v Version) error
}

// Version is a blob as one Put has written it.
type Version struct {
	Name string
	// ETag is unique to that Put.
	ETag string
}
