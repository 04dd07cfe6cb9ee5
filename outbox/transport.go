package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Event is what a Transport delivers. All attempts deliver the same event, except for Attempt.
type Event struct {
	// ID is the message's id within its tenant.
	ID       string
	TenantID string
	// Type is the event type, by which routes are found.
	Type string
	// Key is the idempotency key: a receiver that has seen it for this tenant has seen the event.
	Key uuid.UUID
	// Payload is the JSON text that the producer gave, at most MaxPayload bytes. A Transport must not change it.
	Payload   json.RawMessage
	CreatedAt time.Time
	// OrderKey is "" for an event that may overtake others.
	OrderKey string
	// CorrelationID and TraceParent (W3C) are "" when the producer gave none.
	CorrelationID string
	TraceParent   string
	// Attempt is the number of this attempt, from 1.
	Attempt int
}

// Transport delivers events to one destination. Implementations are safe for concurrent use.
type Transport interface {
	// Deliver hands one event over and returns when the destination has stored it. ctx ends when the time of a delivery
	// is over (Options.DeliveryTimeout). An error is transient, so that the event is tried again, unless it is a
	// *DeliveryError that says otherwise. Its text is stored and shown, so it must not hold secrets.
	Deliver(ctx context.Context, e Event) error
}

// DeliveryError is an error with details. Any other error of a Transport is transient.
type DeliveryError struct {
	// Permanent says that another attempt cannot help: the event becomes dead at once.
	Permanent bool
	// RetryAfter is the delay that the destination asks for; 0 if it does not. The longer of it and the back-off
	// applies.
	RetryAfter time.Duration
	// Status is the status code from the destination, for example of HTTP; 0 if there is none.
	Status int
	// Err is the cause; not nil.
	Err error
}

// Error is the text of the cause, with the status if there is one.
func (e *DeliveryError) Error() string {
	if e.Status == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("status %d: %v", e.Status, e.Err)
}

// Unwrap returns the cause.
func (e *DeliveryError) Unwrap() error { return e.Err }
