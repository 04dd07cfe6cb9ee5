package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/outbox"
)

// maxConnected bounds the instances with open connections.
const maxConnected = 1000

// instances sends an event to the address of its instance, from the registry at that time. All instances are one
// destination: they share its circuit and its slots.
type instances struct {
	name     string
	settings settings.HTTPDestination
	with     Platform

	mu        sync.Mutex
	connected map[string]toInstance // by instance
}

// toInstance is the transport to the address of an instance.
type toInstance struct {
	address string
	*outbox.HTTP
}

var _ outbox.Transport = (*instances)(nil)

func newInstances(name string, d settings.HTTPDestination, with Platform) *instances {
	return &instances{name: name, settings: d, with: with, connected: map[string]toInstance{}}
}

// Deliver sends an event once. An event for an instance that is not registered, or has no permitted address, waits
// until an operator has fixed that (outbox.ErrMisconfigured).
func (d *instances) Deliver(ctx context.Context, e outbox.Event) error {
	var about struct {
		InstanceID string `json:"instanceId"`
	}
	if err := json.Unmarshal(e.Payload, &about); err != nil || about.InstanceID == "" {
		return &outbox.DeliveryError{Permanent: true, Err: fmt.Errorf("event %.64q names no instanceId: route it to another destination than %s", e.Type, d.name)}
	}
	address, err := d.address(ctx, about.InstanceID)
	if err != nil {
		return &outbox.DeliveryError{Err: err}
	}
	to, err := d.to(about.InstanceID, address)
	if err != nil {
		return &outbox.DeliveryError{Err: fmt.Errorf("%w: the address of instance %s: %w", outbox.ErrMisconfigured, about.InstanceID, err)}
	}
	return to.Deliver(ctx, e)
}

// address returns the address for an instance's events.
func (d *instances) address(ctx context.Context, instanceID string) (string, error) {
	i, err := d.with.Registry.Get(ctx, instanceID)
	var endpoints registry.Endpoints
	if err == nil {
		endpoints, err = i.Endpoints()
	}
	switch {
	case errors.Is(err, registry.ErrNotFound), errors.Is(err, registry.ErrInvalid), errors.Is(err, registry.ErrDamaged):
		return "", fmt.Errorf("%w: %w", outbox.ErrMisconfigured, err)
	case err == nil && endpoints.Events == "":
		return "", fmt.Errorf("%w: instance %s has no address for its events: set endpoints.events in the registry", outbox.ErrMisconfigured, instanceID)
	}
	return endpoints.Events, err
}

// to returns the transport to an instance.
func (d *instances) to(instanceID, address string) (*outbox.HTTP, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, ok := d.connected[instanceID]
	if ok && before.address == address {
		return before.HTTP, nil
	}
	to, err := outbox.NewHTTP(httpConfig(d.name, d.settings.Of(instanceID, address), d.with))
	if err != nil {
		return nil, err
	}
	if len(d.connected) >= maxConnected {
		d.disconnect()
	} else if ok {
		_ = before.Close() // requests in flight continue
	}
	d.connected[instanceID] = toInstance{address, to}
	return to, nil
}

// disconnect drops all transports. Requests in flight continue.
func (d *instances) disconnect() {
	for _, c := range d.connected {
		_ = c.Close()
	}
	clear(d.connected)
}

// Close closes idle connections.
func (d *instances) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.disconnect()
	return nil
}
