// Package receiver is the receiving side of an outbox: it receives events over HTTP, and verifies their sender.
//
// It accepts requests that outbox.HTTP sends in the structured mode with signing keys: a CloudEvent 1.0 as JSON, signed
// as Standard Webhooks does. A returned event was signed as a whole with one of the receiver's keys, recently. For any
// other request, the error says whether a retry can help. Binary mode is refused: its signature covers neither the type
// nor the tenant of an event.
//
// An outbox delivers at least once, and within the time tolerance any observer can replay a request. The receiver
// therefore remembers the ids of processed events, or processes events idempotently.
//
// The package owns no storage keys.
package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/outbox"
)

// MaxBody bounds a request, in bytes: an event of the largest payload with its attributes.
const MaxBody = outbox.MaxPayload + 64<<10

// structuredType is the media type of the structured mode.
const structuredType = "application/cloudevents+json"

// Test for these errors with errors.Is. Other errors are outbox.ErrSignature, and those of Receiver.Keys. Only the
// latter may be retried.
var (
	// ErrEvent means that the request is not a CloudEvent in the structured mode.
	ErrEvent = errors.New("not a CloudEvent in the structured mode")
	// ErrTooLarge means that the request has more than MaxBody bytes.
	ErrTooLarge = errors.New("the request is too large")
)

// Event is an event as sent.
type Event struct {
	// ID is the same in all deliveries of an event, and unique among the events of this source.
	ID     string
	Source string
	Type   string
	// Subject, TenantID and CorrelationID are "" when the sender omitted them.
	Subject       string
	TenantID      string
	CorrelationID string
	// Time is when the event was added to the outbox, the zero time when the sender omitted it.
	Time time.Time
	// Data is the payload as JSON, nil for none.
	Data json.RawMessage
}

// document is the JSON event format.
type document struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Subject         string          `json:"subject"`
	Time            time.Time       `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	TenantID        string          `json:"tenantid"`
	CorrelationID   string          `json:"correlationid"`
	DataRef         string          `json:"dataref"`
	Data            json.RawMessage `json:"data"`
}

// Receiver verifies events. It is safe for concurrent use.
type Receiver struct {
	// Keys returns the keys, one of which has to sign the request about this event. The event is not verified yet: use it
	// only to choose the keys. Required.
	Keys func(ctx context.Context, e Event) ([]outbox.SigningKey, error)
	// Tolerance is how far the time of a signature may be from the clock; outbox.DefaultTolerance when 0.
	Tolerance time.Duration
	// Now is the clock; time.Now when nil.
	Now func() time.Time
}

// Receive reads a request and verifies it.
func (r Receiver) Receive(request *http.Request) (Event, error) {
	body, err := io.ReadAll(io.LimitReader(request.Body, MaxBody+1))
	if err != nil {
		return Event{}, fmt.Errorf("receive an event: %w: it ended early: %w", ErrEvent, err)
	}
	if len(body) > MaxBody {
		return Event{}, fmt.Errorf("receive an event: %w: %d bytes are allowed", ErrTooLarge, MaxBody)
	}
	return r.Verify(request.Context(), request.Header, body)
}

// Verify verifies a request whose body was read unchanged.
func (r Receiver) Verify(ctx context.Context, header http.Header, body []byte) (Event, error) {
	if kind, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || kind != structuredType {
		return Event{}, fmt.Errorf("verify an event: %w: the content type is %.64q, not %s", ErrEvent, header.Get("Content-Type"), structuredType)
	}
	e, err := Parse(body)
	if err != nil {
		return Event{}, fmt.Errorf("verify an event: %w", err)
	}
	keys, err := r.Keys(ctx, e)
	if err != nil {
		return Event{}, fmt.Errorf("verify event %.128q: find its keys: %w", e.ID, err)
	}
	now := time.Now
	if r.Now != nil {
		now = r.Now
	}
	if _, err := outbox.VerifySignature(header, body, keys, now(), r.Tolerance); err != nil {
		return Event{}, fmt.Errorf("verify event %.128q: %w", e.ID, err)
	}
	return e, nil
}

// Parse reads an event from a body without verifying it. The error is an ErrEvent.
func Parse(body []byte) (Event, error) {
	if err := payload.Check(body); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	var d document
	if err := json.Unmarshal(body, &d); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrEvent, payload.Explain(err))
	}
	switch {
	case d.SpecVersion != "1.0" || d.ID == "" || d.Source == "" || d.Type == "":
		return Event{}, fmt.Errorf("%w: specversion 1.0, id, source and type are required", ErrEvent)
	case d.DataRef != "":
		return Event{}, fmt.Errorf("%w: its data is elsewhere", ErrEvent)
	case d.DataContentType != "" && d.DataContentType != "application/json":
		return Event{}, fmt.Errorf("%w: its data is %.64q, not JSON", ErrEvent, d.DataContentType)
	}
	return Event{ID: d.ID, Source: d.Source, Type: d.Type, Subject: d.Subject, TenantID: d.TenantID, CorrelationID: d.CorrelationID,
		Time: d.Time, Data: d.Data}, nil
}
