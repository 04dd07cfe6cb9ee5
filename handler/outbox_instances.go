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

// maxConnected bounds the instances to which connections are kept.
const maxConnected = 1000

// instances sends an event to the address of the instance that it is about, as the registry has it at the time. All of them are one
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

// Deliver sends an event once. An instance that is not registered, or has no address, is for a person: the event becomes dead at
// once, and can be retried when that is mended.
func (d *instances) Deliver(ctx context.Context, e outbox.Event) error {
	var about struct {
		InstanceID string `json:"instanceId"`
	}
	if err := json.Unmarshal(e.Payload, &about); err != nil || about.InstanceID == "" {
		return &outbox.DeliveryError{Permanent: true, Err: fmt.Errorf("event %.64q names no instanceId: route it to another destination than %s", e.Type, d.name)}
	}
	i, err := d.with.Registry.Get(ctx, about.InstanceID)
	if err != nil {
		return &outbox.DeliveryError{Permanent: errors.Is(err, registry.ErrNotFound) || errors.Is(err, registry.ErrInvalid) || errors.Is(err, registry.ErrDamaged), Err: err}
	}
	endpoints, err := i.Endpoints()
	if err == nil && endpoints.Events == "" {
		err = fmt.Errorf("instance %s has no address for its events: set endpoints.events in the registry, and retry", i.InstanceID)
	}
	if err != nil {
		return &outbox.DeliveryError{Permanent: true, Err: err}
	}
	to, err := d.to(i.InstanceID, endpoints.Events)
	if err != nil {
		return &outbox.DeliveryError{Permanent: true, Err: fmt.Errorf("the address of instance %s: %w", i.InstanceID, err)}
	}
	return to.Deliver(ctx, e)
}

// to is the transport to an instance.
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
		_ = before.Close() // what is under way goes on
	}
	d.connected[instanceID] = toInstance{address, to}
	return to, nil
}

// disconnect forgets all transports. What is under way goes on.
func (d *instances) disconnect() {
	for _, c := range d.connected {
		_ = c.Close()
	}
	clear(d.connected)
}

// Close ends idle connections.
func (d *instances) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.disconnect()
	return nil
}
