package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Event is what leaves. It does not change: every try of a message carries the same one, but for Attempt.
type Event struct {
	// ID is the message's id within its tenant.
	ID       string
	TenantID string
	// Type is the event type that routes go by.
	Type string
	// Key is the idempotency key: a receiver that has seen it for this tenant has seen the event.
	Key uuid.UUID
	// Payload is the JSON text as the producer gave it, at most MaxPayload bytes. A Transport does not change it.
	Payload   json.RawMessage
	CreatedAt time.Time
	// OrderKey is "" for an event that may overtake others.
	OrderKey string
	// CorrelationID and TraceParent (W3C) are "" when the producer gave none.
	CorrelationID string
	TraceParent   string
	// Attempt counts the tries, from 1.
	Attempt int
}

// Transport delivers events to one destination. Implementations are safe for concurrent use.
type Transport interface {
	// Deliver hands one event over and returns when the destination has it for good. ctx ends when the time of a
	// delivery is over (Options.DeliveryTimeout). An error is transient, so that the event is tried again, unless it
	// is a *DeliveryError that says otherwise. Its text is stored and shown: it holds no secrets.
	Deliver(ctx context.Context, e Event) error
}

// DeliveryError is how a Transport says more about a failure than that it happened; any other error is transient.
type DeliveryError struct {
	// Permanent: another try cannot help, the event is dead at once.
	Permanent bool
	// RetryAfter is what the destination asks to wait; 0 if it does not say. The longer of it and the back-off counts.
	RetryAfter time.Duration
	// Status is the destination's code, an HTTP status for one; 0 if there is none.
	Status int
	// Err is the cause; not nil.
	Err error
}

// Error gives the cause, and the status if there is one.
func (e *DeliveryError) Error() string {
	if e.Status == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("status %d: %v", e.Status, e.Err)
}

// Unwrap gives the cause.
func (e *DeliveryError) Unwrap() error { return e.Err }
