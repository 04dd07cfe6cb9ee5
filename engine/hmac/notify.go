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

// Event is an event of the engine.
type Event struct {
	// TenantID is the tenant of the instance, or publisher.
	TenantID string
	// Type is EventRotated.
	Type string
	// Category, Entity, Kind, Version and the tenant identify the event.
	Category, Entity, Kind, Version string
	// OrderKey keeps the events of an instance in their order.
	OrderKey string
	// CorrelationID is that of the run; "" for none.
	CorrelationID string
	// Payload is JSON, and equal for equal events. It names secrets and holds none.
	Payload json.RawMessage
}

// Publisher accepts events, to deliver them later. It is safe for concurrent use.
type Publisher interface {
	// Publish accepts an event once: the same event again returns the id of the first time. After a nil error the
	// event will be delivered. ErrInput means that repeating it cannot help; after any other error it can be
	// repeated.
	Publish(ctx context.Context, e Event) (id string, err error)
	// ID returns the id of an event for Publish; it does not depend on the payload.
	ID(e Event) string
}

// NotifyInput names the instance and the version to fetch.
type NotifyInput struct {
	// InstanceID is the instance. Required.
	InstanceID string `json:"instanceId"`
	// TenantID is the tenant of the instance and of the event; publisher when it is "".
	TenantID string `json:"tenantId,omitempty"`
	// SecretName and Version name the key, as RotateOutput does. Required.
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
}

// NotifyOutput describes the published event. Times are UTC, in whole seconds.
type NotifyOutput struct {
	InstanceID string `json:"instanceId"`
	SecretName string `json:"secretName"`
	// Version is the version to sign with from ActiveAtUtc on, and to accept immediately. Without a time, it is to be
	// used immediately.
	Version     string    `json:"version"`
	ActiveAtUtc time.Time `json:"activeAtUtc,omitzero"`
	// PreviousVersion is the replaced version; verifiers accept it at least until GraceEndsAtUtc, and while the
	// secret store has it enabled. Both are omitted without a predecessor.
	PreviousVersion string    `json:"previousVersion,omitempty"`
	GraceEndsAtUtc  time.Time `json:"graceEndsAtUtc,omitzero"`
	// EventID is the id of the event.
	EventID string `json:"eventId,omitempty"`
}

// Notify publishes, once, that the instance has to fetch the version, with its times and its predecessor. Repeating
// it returns the existing event; to redeliver it, replay it. Errors are ErrInput, ErrVersionMissing and
// ErrVersionDisabled, and those of secrets, of tables and of the Publisher, after which it can be repeated.
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

// eventOf returns the event of a version, with its identifying fields.
func eventOf(tenantID, instanceID, secretName, version string) Event {
	return Event{TenantID: cmp.Or(tenantID, engine.PublisherInstance), Type: EventRotated,
		Category: Engine, Entity: instanceID, Kind: "rotated", Version: secretName + "/" + version}
}
