package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Publication is an event that an orchestration publishes to the outside world.
type Publication struct {
	// TenantID is the tenant that the event belongs to, Type is the type of event; both are required.
	TenantID string
	Type     string
	// Payload is the event as JSON. It must not hold secrets.
	Payload json.RawMessage
	// Key is the idempotency key: two events with one key in a tenant are the same event. "" derives a key from the
	// place in the orchestration, so that an execution that follows a failed one does not publish the event again.
	Key string
	// OrderKey keeps events with the same order key in order; "" for none.
	OrderKey string
	// Report marks an event that only reports the outcome of the attempt. Published after a failure, it does not make
	// the next attempt start over. Other events do, because they may represent work.
	Report bool
	// CorrelationID is the correlation id of the orchestration; Publish sets it.
	CorrelationID string
	// Trace is the trace context of the event; Publish sets it.
	Trace string
}

// ErrNoPublisher: the runtime has no Config.Publish.
var ErrNoPublisher = errors.New("the runtime has no publisher: set Config.Publish")

// Publish publishes an event. The event is part of the round: it is sent if and only if the round is committed, at
// least once, and with the same key each time. Publish does not wait for that.
func (c *Context) Publish(p Publication) error {
	if err := p.validate(); err != nil {
		return Permanent(fmt.Errorf("publish %.64q: %w", p.Type, err))
	}
	if !c.execution.publishes {
		return Permanent(fmt.Errorf("publish %s: %w", p.Type, ErrNoPublisher))
	}
	if c.isCanceled() {
		return canceledError("publish " + p.Type)
	}
	c.execution.publish(p)
	return nil
}

// These are the limits of an outbox. They are checked before the decision, because a decided event must not be
// rejected later.
const (
	maxPublication     = 1 << 20 // bytes of payload
	maxPublicationName = 128     // bytes of a tenant, a type and an order key
)

func (p Publication) validate() error {
	switch {
	case p.TenantID == "" || p.Type == "" || !json.Valid(p.Payload) || !utf8.Valid(p.Payload):
		return errors.New("a tenant, a type and a payload of JSON in UTF-8 are required")
	case !utf8.ValidString(p.TenantID + p.Type + p.OrderKey + p.Key):
		return errors.New("tenant, type, order key and key are UTF-8")
	case max(len(p.TenantID), len(p.Type), len(p.OrderKey)) > maxPublicationName:
		return fmt.Errorf("tenant, type and order key have at most %d bytes", maxPublicationName)
	case len(p.Payload) > maxPublication:
		return fmt.Errorf("the payload has %d bytes, at most %d are allowed", len(p.Payload), maxPublication)
	default:
		return storable(p.Payload)
	}
}

func (x *execution) publish(p Publication) {
	if !p.Report {
		x.noteAction()
	}
	if p.Key == "" {
		p.Key = x.childID(p.Type, append(json.RawMessage(p.TenantID+"\n"), p.Payload...))
	}
	p.Payload = compact(p.Payload)
	x.decide(event{Kind: eventPublished, Name: p.Type, Payload: p.Payload, Target: &target{Child: p.Key, Tenant: p.TenantID, Order: p.OrderKey}})
}

// publishEvents passes the events that a round published to Config.Publish.
func (d *driver) publishEvents(ctx context.Context, r round) error {
	var all []Publication
	for _, e := range r.Decided {
		if e.Kind == eventPublished {
			to := e.target()
			p := Publication{TenantID: to.Tenant, Type: e.Name, Payload: e.Payload, Key: to.Child, OrderKey: to.Order, CorrelationID: d.start.CorrelationID, Trace: d.spanContext(func() string { return PublicationSpan(d.start.ID, to.Child) })}
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	if d.rt.config.Publish == nil {
		return fmt.Errorf("orchestration %s: %w", d.start.ID, ErrNoPublisher)
	}
	if err := d.rt.config.Publish(ctx, all); err != nil {
		return fmt.Errorf("publish %d events of orchestration %s: %w", len(all), d.start.ID, err)
	}
	return nil
}
