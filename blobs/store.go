package blobs

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// These errors can be returned by every Store. Test for them with errors.Is. They are the same values in the packages
// tables, queues and blobs.
var (
	// ErrNotFound means that the blob or the container does not exist.
	ErrNotFound = storage.ErrNotFound
	// ErrPrecondition means that the blob has changed since its ETag was read, or exists although it should not. The
	// caller's own request may be the reason, because the adapter repeats a request whose answer was lost. Read the blob
	// to find out.
	ErrPrecondition = storage.ErrPrecondition
	// ErrTooLarge means that the blob exceeds MaxSize. Do not retry.
	ErrTooLarge = storage.ErrTooLarge
	// ErrInvalid means that the service rejects this name. Do not retry.
	ErrInvalid = storage.ErrInvalid
	// ErrDenied means that the service rejects the credential; nothing was applied.
	ErrDenied = storage.ErrDenied
	// ErrThrottled means that the service is busy; the operation was not applied. Retry later.
	ErrThrottled = storage.ErrThrottled
	// ErrOutcomeUnknown means that no answer came: the operation may or may not have been applied. All operations but
	// PutIf may be repeated.
	ErrOutcomeUnknown = storage.ErrOutcomeUnknown
)

// MaxSize is the limit of a blob for Put and Get, in bytes: both hold it in memory.
const MaxSize = 64 << 20

// Store is the part of Azure Blob Storage that this program uses: small blobs, read and written as a whole.
// Implementations are safe for concurrent use. They neither keep nor share the data of arguments and results. A
// container name has 3 to 63 of a-z, 0-9 and single hyphens between them. A blob name has 1 to 1,024 UTF-16 units, may
// have slashes (no empty, "." or ".." segment), and holds no backslash and no control character.
type Store interface {
	// CreateContainer creates a container if it is missing.
	CreateContainer(ctx context.Context, container string) error
	// Put writes a blob, replacing an existing one.
	Put(ctx context.Context, container, name string, data []byte) error
	// PutIf writes a blob if it still has this ETag, "" for a blob that must not exist yet; otherwise the error is
	// ErrPrecondition. WithCaptureResponse captures the ETags that Get reads and PutIf writes.
	PutIf(ctx context.Context, container, name string, data []byte, etag string) error
	// Get reads a blob. The error may be ErrNotFound.
	Get(ctx context.Context, container, name string) ([]byte, error)
	// Delete deletes a blob; a missing one is not an error.
	Delete(ctx context.Context, container, name string) error
	// List returns one page of the names that begin with prefix, ascending: up to 1,000, and next, which continues the
	// list, or "" on the last page. A page may hold fewer names, even none, and still have a next; All handles that.
	// Changes between two pages may be seen or not; no name is seen twice. The prefix is the beginning of a blob name, up
	// to any character; "" selects all. The continuation is the next of the previous page, valid with the same container
	// and prefix only, or "" for the first page. A missing container is an ErrNotFound.
	//
	// Names are compared by their code points. The order of a character above U+FFFF and one from U+E000 to U+FFFF depends
	// on the store.
	List(ctx context.Context, container, prefix, continuation string) (names []string, next string, err error)
	// ListOld examines one page of the blobs whose names begin with prefix, in the order and with the promises of List,
	// and returns those that were last written before a time. The service counts in seconds: a blob may appear up to a
	// second older than it is. Its continuations are not those of List.
	ListOld(ctx context.Context, container, prefix string, before time.Time, continuation string) (old []Version, next string, err error)
	// DeleteVersion deletes a blob that still has this version. If it was written or deleted since, the error is
	// ErrPrecondition; an earlier try whose answer was lost may be the reason.
	DeleteVersion(ctx context.Context, container string, v Version) error
}

// Version is a blob as written by one Put.
type Version struct {
	Name string
	// ETag is unique to that Put.
	ETag string
}
