package queues

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// These errors can be returned by every Store. Test for them with errors.Is. Errors that the packages tables, queues
// and blobs share are the same values.
var (
	// ErrNotFound means that the queue does not exist, or that the message was deleted.
	ErrNotFound = storage.ErrNotFound
	// ErrPopReceipt means that the message was received or renewed since, so another receiver has it. The service may
	// return ErrNotFound instead; a receiver treats both alike.
	ErrPopReceipt = errors.New("pop receipt no longer valid")
	// ErrTooLarge means that the body exceeds MaxBody. Do not retry.
	ErrTooLarge = storage.ErrTooLarge
	// ErrInvalid means that the service rejects this name, limit or time. Do not retry.
	ErrInvalid = storage.ErrInvalid
	// ErrDenied means that the service rejects the credential; nothing was applied.
	ErrDenied = storage.ErrDenied
	// ErrThrottled means that the service is busy; the operation was not applied. Retry later.
	ErrThrottled = storage.ErrThrottled
	// ErrOutcomeUnknown means that no answer came: the operation may or may not have been applied. A repeated Send may
	// send twice, and the adapter itself repeats a request whose answer was lost.
	ErrOutcomeUnknown = storage.ErrOutcomeUnknown
)

// The limits of the service.
const (
	// MaxBody is the largest body of Send, in bytes: 64 KiB as base64.
	MaxBody = 48 << 10
	// MaxText is the largest text of a message, in bytes.
	MaxText = 64 << 10
	// MaxDelay is the longest delay and the longest visibility.
	MaxDelay = 7 * 24 * time.Hour
	// MaxReceive is the most messages that one Receive returns.
	MaxReceive = 32
)

// Message is a received message. Text is the stored text; Decode returns the body that the sender encoded.
type Message struct {
	ID string
	// PopReceipt allows Renew and Delete until the message is received again.
	PopReceipt string
	Text       string
	// DequeueCount is the number of receives, this one included.
	DequeueCount int64
	// InsertedAt, ExpiresAt and NextVisibleAt are in UTC with a precision of one second. ExpiresAt is in the year
	// 9999 for a message that never expires.
	InsertedAt    time.Time
	ExpiresAt     time.Time
	NextVisibleAt time.Time
}

// Store is the part of Azure Queue Storage that this program uses. Implementations are safe for concurrent use. Times
// are rounded up to whole seconds, as the service counts.
type Store interface {
	// CreateQueue creates a queue if it is missing.
	CreateQueue(ctx context.Context, queue string) error
	// Send sends a message of 1 to MaxBody bytes in base64. It never expires, and becomes visible after delay (0 to
	// MaxDelay). Send returns the message id.
	Send(ctx context.Context, queue string, body []byte, delay time.Duration) (id string, err error)
	// Receive returns up to limit (1 to 32) visible messages and hides them for the given time (above 0, to MaxDelay).
	Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]Message, error)
	// Renew hides a received message for the given time (0 to MaxDelay), counted from now, and returns its new pop
	// receipt; the old one becomes invalid. Zero makes the message visible immediately.
	Renew(ctx context.Context, queue, id, popReceipt string, visibility time.Duration) (string, error)
	// SendHidden is Send for a sender that keeps the message hidden. It returns the message as if the sender had received
	// it, but without its text and with a dequeue count of 0. The sender may Renew, Update and Delete it. It is hidden for
	// more than 0, to MaxDelay.
	SendHidden(ctx context.Context, queue string, body []byte, hidden time.Duration) (Message, error)
	// Update is Renew with a new body of 1 to MaxBody bytes.
	Update(ctx context.Context, queue, id, popReceipt string, body []byte, visibility time.Duration) (string, error)
	// Delete removes a received message.
	Delete(ctx context.Context, queue, id, popReceipt string) error
	// Peek returns the visible message that the service expects to deliver next and leaves it in the queue. The message
	// has no pop receipt, and the peek is not counted. found is false when no message is visible.
	Peek(ctx context.Context, queue string) (next Message, found bool, err error)
	// Length returns the approximate number of messages, hidden ones included.
	Length(ctx context.Context, queue string) (int, error)
}

// WithSingleTry returns a context whose calls make one request. The caller repeats the call itself, or is insured against its loss.
func WithSingleTry(ctx context.Context) context.Context { return storage.WithSingleTry(ctx) }
