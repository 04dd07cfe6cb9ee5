package update

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/outbound"
)

// Change is a component on its way from a version to another; "" is none.
type Change struct {
	Component string `json:"component"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
}

// ProcessInput names the update to plan.
type ProcessInput struct {
	InstanceID string `json:"instanceId"`
	// JobID is the holder of the registry's lock.
	JobID string `json:"jobId"`
	// Version is "" for an update of one component.
	Version    string   `json:"version,omitempty"`
	Components []Target `json:"components"`
	// Ring, Released and Downgrade are those of Input.
	Ring      string    `json:"ring,omitempty"`
	Released  time.Time `json:"released,omitzero"`
	Downgrade bool      `json:"downgrade,omitempty"`
	// Execution distinguishes the calls of an execution: between two of them another job may have had the lock and
	// changed the components.
	Execution int `json:"execution"`
}

// Plan lists the changes of an update, in order.
type Plan struct {
	Changes []Change `json:"changes"`
	// Revision is the version of the registry's document with the plan: it is unique to this execution, even after a
	// purge.
	Revision int64 `json:"revision,omitempty"`
	// SupersededBy is the newer wanted version; then the plan has no changes.
	SupersededBy *Wanted `json:"supersededBy,omitempty"`
	// Has is the version of the instance before the update.
	Has string `json:"has,omitempty"`
}

// pending is the plan of the current update in the registry. An update that was cut off and starts over needs the
// versions before it, not those that it left behind.
type pending struct {
	JobID   string   `json:"jobId"`
	Changes []Change `json:"changes"`
}

// Process plans an update: it records the desired state in the registry, reads the current versions of the
// components, and records them, too. Behind a newer update it does neither, and returns that one. Repeating it
// returns the same plan while the update is in progress.
func (s *Steps) Process(ctx context.Context, in ProcessInput) (Plan, error) {
	var plan Plan
	var err error
	if plan.SupersededBy, plan.Has, err = s.want(ctx, in); err != nil || plan.SupersededBy != nil {
		return plan, err
	}
	for _, target := range in.Components {
		now, err := s.config.Components.Status(ctx, in.InstanceID, target.Name)
		if err != nil && !errors.Is(err, ErrNoComponent) {
			return Plan{}, fmt.Errorf("plan the update of component %s: %w", target.Name, err)
		}
		plan.Changes = append(plan.Changes, Change{Component: target.Name, From: now.Version, To: target.Version})
	}
	noted, err := s.config.Registry.Update(ctx, in.InstanceID, in.JobID, func(i *registry.Instance) error {
		var before pending
		if _, err := i.Field(fieldPending, &before); err != nil {
			return err
		}
		if before.JobID == in.JobID {
			plan.restore(before)
		}
		return i.SetField(fieldPending, pending{JobID: in.JobID, Changes: plan.Changes})
	})
	if err != nil {
		return Plan{}, fmt.Errorf("plan the update: %w", err)
	}
	plan.Revision = noted.Version
	return plan, nil
}

// restore copies the previous versions of the components from an earlier plan.
func (p Plan) restore(before pending) {
	for i := range p.Changes {
		for _, c := range before.Changes {
			if c.Component == p.Changes[i].Component {
				p.Changes[i].From = c.From
			}
		}
	}
}

// ComponentInput names the component to change.
type ComponentInput struct {
	InstanceID string `json:"instanceId"`
	// JobID is the holder of the registry's lock.
	JobID string `json:"jobId"`
	Change
	// Rollback means that the change undoes an earlier one.
	Rollback bool `json:"rollback,omitempty"`
	// Execution is that of ProcessInput.
	Execution int `json:"execution"`
	// Revision is that of the plan.
	Revision int64 `json:"revision,omitempty"`
}

// key returns the idempotency key of a call, the same in all its attempts. The runtime's key is not enough: after a
// purge, the next orchestration of the instance counts from 1 again, and components remember longer.
func (in ComponentInput) key(info orchestrator.ActivityInfo) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s", in.JobID, in.Revision, info.IdempotencyKey()))
	return hex.EncodeToString(sum[:16])
}

// ComponentOutput is the current version of the component.
type ComponentOutput struct {
	Component string `json:"component"`
	Version   string `json:"version,omitempty"`
	// Sent describes the authentication of the request for the version, nil when none was needed or the client does
	// not record it. All attempts use the same key.
	Sent *outbound.Sent `json:"sent,omitempty"`
}

// ComponentUpdate brings a component to a version, makes sure that it is ready, and records it in the registry. Each
// attempt checks again; ErrUpdating means that it takes more time. Without the lock it changes nothing, and returns a
// *registry.LockedError.
func (s *Steps) ComponentUpdate(ctx context.Context, in ComponentInput) (ComponentOutput, error) {
	if err := s.guard(ctx, in); err != nil {
		return ComponentOutput{}, err
	}
	info := orchestrator.Info(ctx)
	key := in.key(info)
	recorded, last := outbound.Record(ctx)
	asked, err := s.bring(recorded, in, info.Attempt <= 1, key)
	if err != nil {
		return ComponentOutput{}, fmt.Errorf("bring component %s to version %q: %w", in.Component, in.To, err)
	}
	_, err = s.config.Registry.Update(ctx, in.InstanceID, in.JobID, func(i *registry.Instance) error {
		return note(i, in.Component, in.To, s.config.Now())
	})
	if err != nil {
		return ComponentOutput{}, fmt.Errorf("note component %s: %w", in.Component, err)
	}
	out := ComponentOutput{Component: in.Component, Version: in.To}
	// A previous attempt may have sent the request, with the authentication of this one's check.
	if sent := last(); sent != nil && (asked || info.Attempt > 1) {
		as := sent.As(key)
		out.Sent = &as
	}
	return out, nil
}

// guard makes sure that the job holds the lock: a run that has lost it must not disturb the next.
func (s *Steps) guard(ctx context.Context, in ComponentInput) error {
	i, err := s.config.Registry.Get(ctx, in.InstanceID)
	if err != nil {
		return fmt.Errorf("look at the lock: %w", err)
	}
	if now := s.config.Now(); !i.Lock.Held(now) || i.Lock.JobID != in.JobID {
		e := &registry.LockedError{InstanceID: in.InstanceID, JobID: in.JobID}
		if i.Lock.Held(now) {
			e.Holder, e.Until = i.Lock.JobID, i.Lock.Until
		}
		return e
	}
	return nil
}

// bring requests the version from the component, the first time and while it does not know the request, and checks
// whether it is ready.
func (s *Steps) bring(ctx context.Context, in ComponentInput, first bool, key string) (asked bool, err error) {
	c := s.config.Components
	for ; ; asked = true {
		status, err := c.Status(ctx, in.InstanceID, in.Component)
		gone := errors.Is(err, ErrNoComponent)
		if err != nil && !gone {
			return asked, err
		}
		there := status.Version == in.To || (in.To == "" && gone)
		switch {
		case there && (gone || status.State == Ready):
			return asked, nil
		case !asked && (first || !there):
			if err := c.Apply(ctx, in.InstanceID, in.Component, in.To, key); err != nil {
				return asked, err
			}
		case there && status.State == Failed:
			return asked, fmt.Errorf("%w: %s", ErrFailed, status.Message)
		default:
			return asked, fmt.Errorf("%w: it is %s in version %q", ErrUpdating, status.State, status.Version)
		}
	}
}

// FinishInput is the outcome of the update.
type FinishInput struct {
	InstanceID string `json:"instanceId"`
	JobID      string `json:"jobId"`
	// Version is the new version of the instance, "" for an unchanged one.
	Version   string `json:"version,omitempty"`
	Execution int    `json:"execution"`
}

// Finish records the end of an update in the registry.
func (s *Steps) Finish(ctx context.Context, in FinishInput) (struct{}, error) {
	_, err := s.config.Registry.Update(ctx, in.InstanceID, in.JobID, func(i *registry.Instance) error {
		if in.Version != "" {
			if err := i.SetField(fieldVersion, in.Version); err != nil {
				return err
			}
		}
		return i.SetField(fieldPending, nil)
	})
	if err != nil {
		return struct{}{}, fmt.Errorf("note the end of the update: %w", err)
	}
	return struct{}{}, nil
}
