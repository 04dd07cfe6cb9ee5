package hmac

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// EventRotated is the type of the event that Notify publishes. Its payload is a NotifyOutput without the event's id.
const EventRotated = "hmac.rotated"

// Event is what the engine tells the outside.
type Event struct {
	// TenantID is the tenant of the instance, or publisher.
	TenantID string
	// Type is EventRotated.
	Type string
	// Category, Entity, Kind and Version make it the same event, together with the tenant.
	Category, Entity, Kind, Version string
	// OrderKey keeps the events of an instance in their order.
	OrderKey string
	// CorrelationID is that of the run; "" when there is none.
	CorrelationID string
	// Payload is JSON, and the same for the same event. It names secrets and holds none.
	Payload json.RawMessage
}

// Publisher takes events, to deliver them later. It is safe for concurrent use.
type Publisher interface {
	// Publish takes an event once: the same event again gives the id of the first time. When it returns without error, the
	// event will leave. An ErrInput says that repeating it cannot help; after any other error it can be repeated.
	Publish(ctx context.Context, e Event) (id string, err error)
	// ID is the id that Publish gives an event; it does not depend on the payload.
	ID(e Event) string
}

// NotifyInput says which instance has to fetch which version.
type NotifyInput struct {
	// InstanceID is the instance. Required.
	InstanceID string `json:"instanceId"`
	// TenantID is the tenant of the instance, which the event belongs to; publisher when it is "".
	TenantID string `json:"tenantId,omitempty"`
	// SecretName and Version name the key, as RotateOutput does. Required.
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
}

// NotifyOutput says what was published. Times are UTC, in whole seconds.
type NotifyOutput struct {
	InstanceID string `json:"instanceId"`
	SecretName string `json:"secretName"`
	// Version is the one to sign with from ActiveAtUtc on, and to accept at once. Without a time, it is to be used at once.
	Version     string    `json:"version"`
	ActiveAtUtc time.Time `json:"activeAtUtc,omitzero"`
	// PreviousVersion is the one that it takes the place of; verifiers accept it until GraceEndsAtUtc at least, and for as
	// long as the secret store has it enabled. Both are left out when there is none.
	PreviousVersion string    `json:"previousVersion,omitempty"`
	GraceEndsAtUtc  time.Time `json:"graceEndsAtUtc,omitzero"`
	// EventID is the id of the event.
	EventID string `json:"eventId,omitempty"`
}

// Notify publishes, once, that the instance has to fetch the version, and when it takes the place of which. Repeating it
// returns the event that is there: who wants to have it delivered again replays it. Errors are ErrInput, ErrVersionMissing
// and ErrVersionDisabled, and those of secrets, of tables and of the Publisher, after which it can be repeated.
func (s *Steps) Notify(ctx context.Context, in NotifyInput) (NotifyOutput, error) {
	if err := in.validate(); err != nil {
		return NotifyOutput{}, fmt.Errorf("notify: %w", err)
	}
	out, err := s.announce(ctx, in)
	if err != nil {
		return NotifyOutput{}, fmt.Errorf("notify %s of %s version %s: %w", in.InstanceID, in.SecretName, in.Version, err)
	}
	payload, err := json.Marshal(out)
	if err != nil {
		return NotifyOutput{}, fmt.Errorf("notify %s of %s version %s: %w", in.InstanceID, in.SecretName, in.Version, err)
	}
	event := eventOf(in.TenantID, in.InstanceID, in.SecretName, in.Version)
	event.OrderKey, event.CorrelationID, event.Payload = in.SecretName, orchestrator.Info(ctx).CorrelationID, payload
	if out.EventID, err = s.publisher.Publish(ctx, event); err != nil {
		return NotifyOutput{}, fmt.Errorf("notify %s of %s version %s: %w", in.InstanceID, in.SecretName, in.Version, err)
	}
	return out, nil
}

// eventOf is the event of a version, with what makes it the same event.
func eventOf(tenantID, instanceID, secretName, version string) Event {
	return Event{TenantID: cmp.Or(tenantID, engine.PublisherInstance), Type: EventRotated,
		Category: Engine, Entity: instanceID, Kind: "rotated", Version: secretName + "/" + version}
}
