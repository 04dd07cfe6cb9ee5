package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/registry"
)

// provisioningField is the field of the registry's documents that belongs to the provisioning engine.
const provisioningField = "provisioning"

// instances is the registry for the provisioning engine.
type instances struct{ registry *registry.Registry }

// Create adds an instance.
func (r instances) Create(ctx context.Context, i provisioning.Instance) error {
	document := registry.Instance{InstanceID: i.ID, TenantID: i.TenantID}
	if err := document.SetField(provisioningField, i); err != nil {
		return fmt.Errorf("register instance %s: %w", i.ID, err)
	}
	_, err := r.registry.Create(ctx, document)
	if errors.Is(err, registry.ErrExists) {
		return fmt.Errorf("%w: %w", provisioning.ErrRegistered, err)
	}
	return err
}

// Update changes an instance by compare-and-set. One write needs no lock of its own; an instance that another job has
// locked stays unchanged.
func (r instances) Update(ctx context.Context, instanceID string, change func(*provisioning.Instance) error) error {
	_, err := r.registry.Update(ctx, instanceID, "", func(document *registry.Instance) error {
		i := provisioning.Instance{ID: document.InstanceID, TenantID: document.TenantID}
		if _, err := document.Field(provisioningField, &i); err != nil {
			return err
		}
		if err := change(&i); err != nil {
			return err
		}
		return document.SetField(provisioningField, i)
	})
	if errors.Is(err, registry.ErrNotFound) {
		return fmt.Errorf("%w: %w", provisioning.ErrNotRegistered, err)
	}
	if locked, ok := errors.AsType[*registry.LockedError](err); ok {
		return &provisioning.LockedError{Holder: locked.Holder, Until: locked.Until}
	}
	return err
}

// active reports whether an instance is notified of updates: an instance of the provisioning engine must be active,
// and the publisher is no instance.
func active(document registry.Instance) (bool, error) {
	if document.InstanceID == engine.PublisherInstance {
		return false, nil
	}
	i := provisioning.Instance{State: provisioning.StateActive}
	_, err := document.Field(provisioningField, &i)
	return i.State == provisioning.StateActive, err
}
