package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/outbox"
)

// hmacEngine rotates HMAC keys (docs/engines/hmac.md).
func hmacEngine(p *handler.Platform) (engine.Definition, error) {
	const prefix = "ROUNDHOUSE_HMAC_"
	timing := hmac.DefaultTiming()
	timing.Grace = p.Settings.Duration(prefix+"GRACE", timing.Grace, 0)
	timing.Propagation = p.Settings.Duration(prefix+"PROPAGATION", timing.Propagation, 0)
	p.Settings.Reject(prefix+"GRACE, "+prefix+"PROPAGATION", timing.Validate())
	p.Settings.NeedsRole(settings.SecretsOfficer())
	checkKept(p, prefix+"GRACE", timing.Grace)
	var steps *hmac.Steps
	needed, err := consumersOf(p, hmac.Engine, func(ctx context.Context, target, version string) (bool, error) {
		return steps.Knows(ctx, target, version)
	})
	if err != nil {
		return engine.Definition{}, err
	}
	steps, err = hmac.New(hmac.Config{Vault: p.Secrets, Tables: p.Tables, Publisher: eventPublisher{p.Outbox}, Arrivals: needed, Timing: &timing})
	if err != nil {
		return engine.Definition{}, err
	}
	d := hmac.Definition(steps)
	d.Consumers = needed
	targets := rotationsFrom(p.Settings)
	d.Schedules = []engine.Schedule{targets.schedule(hmac.Engine, "0 11 2 * * *")}
	d.Owner = func(ctx context.Context, m engine.Message, instanceTenant string) (string, error) {
		if tenantID, ok := targets.tenantOf(hmac.Engine, m.InstanceID); ok && !strings.EqualFold(tenantID, instanceTenant) {
			return tenantID, nil
		}
		return steps.Owner(ctx, m, instanceTenant)
	}
	d.Example = &engine.Message{InstanceID: "sample-instance"}
	return d, nil
}

// eventPublisher lets engines publish through the outbox.
type eventPublisher struct{ writer *outbox.Writer }

// Publish adds an event of the hmac engine to the outbox.
func (p eventPublisher) Publish(ctx context.Context, e hmac.Event) (string, error) {
	added, err := p.writer.Add(ctx, outbox.Message{TenantID: e.TenantID, EventType: e.Type, Payload: e.Payload, OrderKey: e.OrderKey, CorrelationID: e.CorrelationID,
		Key: p.key(e)})
	if errors.Is(err, outbox.ErrInvalid) || errors.Is(err, outbox.ErrPayloadTooLarge) {
		return "", fmt.Errorf("%w: %w", hmac.ErrInput, err)
	}
	return added.ID, err
}

// ID returns the id of an event in the outbox.
func (p eventPublisher) ID(e hmac.Event) string { return p.key(e).String() }

func (p eventPublisher) key(e hmac.Event) uuid.UUID {
	return p.writer.Key(e.TenantID, e.Category, e.Entity, e.Kind, e.Version)
}
