package queues

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// These errors can be returned by every Store. Test for them with errors.Is. Those that packages tables, queues and
// blobs have in common are the same values.
var (
	// ErrNotFound: no such queue, or the message is gone: somebody deleted it.
	ErrNotFound = storage.ErrNotFound
	// ErrPopReceipt: the message was received or renewed since, so another receiver has it. The service may return
	// ErrNotFound instead; a receiver treats both alike.
	ErrPopReceipt = errors.New("pop receipt no longer valid")
	// ErrTooLarge: the body exceeds MaxBody; repeating it cannot help.
	ErrTooLarge = storage.ErrTooLarge
	// ErrInvalid: the service does not accept this name, limit or time; repeating it cannot help.
	ErrInvalid = storage.ErrInvalid
	// ErrDenied: the service refuses the credential; nothing was applied.
	ErrDenied = storage.ErrDenied
	// ErrThrottled: the service is busy and the operation was not applied; repeat it later.
	ErrThrottled = storage.ErrThrottled
	// ErrOutcomeUnknown: no answer; the operation may or may not have been applied. A repeated Send may send twice, and
	// the adapter itself repeats a request whose answer was lost.
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
	// MaxReceive is how many messages one Receive can return.
	MaxReceive = 32
)

// Message is a received message. Text is what storage holds; Decode returns the body that the sender meant.
type Message struct {
	ID string
	// PopReceipt allows Renew and Delete until the message is received again.
	PopReceipt string
	Text       string
	// DequeueCount is how often the message was received, this time included.
	DequeueCount int64
	// InsertedAt, ExpiresAt and NextVisibleAt are in UTC with a precision of one second. ExpiresAt is in the year
	// 9999 for a message that never expires.
	InsertedAt    time.Time
	ExpiresAt     time.Time
	NextVisibleAt time.Time
}

// Store is Azure Queue Storage as this program uses it. Implementations are safe for concurrent use. Times are rounded
// up to whole seconds, as the service counts.
type Store interface {
	// CreateQueue creates a queue if it is missing.
	CreateQueue(ctx context.Context, queue string) error
	// Send sends a message of 1 to MaxBody bytes in base64. It never expires, and becomes visible after delay (0 to
	// MaxDelay). Send returns the message id.
	Send(ctx context.Context, queue string, body []byte, delay time.Duration) (id string, err error)
	// Receive returns up to limit (1 to 32) visible messages and hides them for the given time (above 0, to MaxDelay).
	Receive(ctx context.Context, queue string, limit int, visibility time.Duration) ([]Message, error)
	// Renew hides a received message for the given time (0 to MaxDelay), counted from now, and returns its new pop
	// receipt; the old one becomes invalid. Zero makes the message visible at once.
	Renew(ctx context.Context, queue, id, popReceipt string, visibility time.Duration) (string, error)
	// SendHidden is Send for a sender that goes on to keep the message hidden: it returns the message as if it had been received
	// by the sender, who may Renew, Update and Delete it, but without its text, and never received yet. It is hidden for more than 0, to MaxDelay.
	SendHidden(ctx context.Context, queue string, body []byte, hidden time.Duration) (Message, error)
	// Update is Renew with another body of 1 to MaxBody bytes.
	Update(ctx context.Context, queue, id, popReceipt string, body []byte, visibility time.Duration) (string, error)
	// Delete removes a received message.
	Delete(ctx context.Context, queue, id, popReceipt string) error
	// Peek returns the visible message that is the next to be received, as far as the service knows, and leaves it there: it has no
	// pop receipt, and is not counted as received. found is false when none is visible.
	Peek(ctx context.Context, queue string) (next Message, found bool, err error)
	// Length is the approximate number of messages, hidden ones included.
	Length(ctx context.Context, queue string) (int, error)
}

// WithSingleTry returns a context whose calls make one request. The caller repeats the call itself, or is insured against its loss.
func WithSingleTry(ctx context.Context) context.Context { return storage.WithSingleTry(ctx) }
