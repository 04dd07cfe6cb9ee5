package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Event is the event that a Transport delivers. All attempts deliver the same event, except for Attempt.
type Event struct {
	// ID is the message's id within its tenant.
	ID       string
	TenantID string
	// Type is the event type, which selects the route.
	Type string
	// Key is the idempotency key: a receiver that has seen it for this tenant has seen the event.
	Key uuid.UUID
	// Payload is the producer's JSON text, at most MaxPayload bytes. A Transport must not change it.
	Payload   json.RawMessage
	CreatedAt time.Time
	// OrderKey is "" for an event that may overtake others.
	OrderKey string
	// CorrelationID and TraceParent (W3C) are "" when the producer set none.
	CorrelationID string
	TraceParent   string
	// Attempt is the number of this attempt, from 1.
	Attempt int
}

// Transport delivers events to one destination. Implementations are safe for concurrent use.
type Transport interface {
	// Deliver sends one event and returns when the destination has stored it. ctx ends when the delivery times out
	// (Options.DeliveryTimeout). An error is transient, so that the event is retried, unless it is a permanent
	// *DeliveryError. Its text is stored and displayed, so it must not hold secrets.
	Deliver(ctx context.Context, e Event) error
}

// DeliveryError is an error with details. Any other error of a Transport is transient.
type DeliveryError struct {
	// Permanent means that another attempt cannot help: the event becomes dead immediately.
	Permanent bool
	// RetryAfter is the delay that the destination requests; 0 for none. The longer of it and the back-off applies.
	RetryAfter time.Duration
	// Status is the status code from the destination, for example of HTTP; 0 without one.
	Status int
	// Err is the cause; not nil.
	Err error
}

// Error returns the text of the cause, with the status if any.
func (e *DeliveryError) Error() string {
	if e.Status == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("status %d: %v", e.Status, e.Err)
}

// Unwrap returns the cause.
func (e *DeliveryError) Unwrap() error { return e.Err }
