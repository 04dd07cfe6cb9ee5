package blobs

import (
	"context"

	"github.com/vibedata/roundhouse/internal/account"
)

// These errors can be returned by every Store. Test for them with errors.Is. They are the same values in the packages
// tables, queues and blobs.
var (
	// ErrNotFound: no such blob, or no such container.
	ErrNotFound = account.ErrNotFound
	// ErrTooLarge: the blob exceeds MaxSize; repeating it cannot help.
	ErrTooLarge = account.ErrTooLarge
	// ErrInvalid: a name that the service does not take; repeating it cannot help.
	ErrInvalid = account.ErrInvalid
	// ErrDenied: the service refuses the credential; nothing was applied.
	ErrDenied = account.ErrDenied
	// ErrThrottled: the service is busy and the operation was not applied; repeat it later.
	ErrThrottled = account.ErrThrottled
	// ErrOutcomeUnknown: no answer; the operation may or may not have been applied. All operations may be repeated.
	ErrOutcomeUnknown = account.ErrOutcomeUnknown
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
	// Get reads a blob, or ErrNotFound.
	Get(ctx context.Context, container, name string) ([]byte, error)
	// Delete removes a blob; a missing one is not an error.
	Delete(ctx context.Context, container, name string) error
}
