package provisioning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// RegisterInput says what an instance has become.
type RegisterInput struct {
	InstanceID string    `json:"instanceId"`
	TenantID   string    `json:"tenantId"`
	Source     string    `json:"source"`
	Action     Action    `json:"action"`
	PlanID     string    `json:"planId,omitempty"`
	Quantity   string    `json:"quantity,omitempty"`
	At         time.Time `json:"at,omitzero"`
	// JobID is the correlation id of the run.
	JobID string `json:"jobId"`
}

// Registered is where the instance stands in the registry.
type Registered struct {
	InstanceID string `json:"instanceId"`
	State      State  `json:"state,omitempty"`
	// Superseded says that a newer notice was there already, or that there is nothing to remove: nothing was changed.
	Superseded bool `json:"superseded,omitempty"`
}

// errSuperseded leaves an instance as it is.
var errSuperseded = errors.New("superseded")

// Register brings the registry up to the notice, under compare-and-set. Repeating it changes nothing. Errors are
// ErrNotice, a *LockedError, and those of the registry.
func (s *Steps) Register(ctx context.Context, in RegisterInput) (Registered, error) {
	r, err := ruleOf(in.Action)
	if err != nil {
		return Registered{}, fmt.Errorf("%w: %w", ErrNotice, err)
	}
	out := Registered{InstanceID: in.InstanceID}
	change := func(i *Instance) error {
		err := in.apply(i, r)
		out.State = i.State
		return err
	}
	err = s.config.Registry.Update(ctx, in.InstanceID, change)
	if errors.Is(err, ErrNotRegistered) {
		if r.state == StateRemoved || r.state == StateRemoving {
			return Registered{InstanceID: in.InstanceID, Superseded: true}, nil
		}
		err = s.create(ctx, in, change)
	}
	if errors.Is(err, errSuperseded) {
		out.Superseded = true
		return out, nil
	}
	if err != nil {
		return Registered{}, fmt.Errorf("register instance %s: %w", in.InstanceID, err)
	}
	return out, nil
}

// create adds the instance, or changes the one that another run has added in between.
func (s *Steps) create(ctx context.Context, in RegisterInput, change func(*Instance) error) error {
	i := Instance{ID: in.InstanceID, State: StateActive}
	if err := change(&i); err != nil {
		return err
	}
	err := s.config.Registry.Create(ctx, i)
	if errors.Is(err, ErrRegistered) {
		return s.config.Registry.Update(ctx, in.InstanceID, change)
	}
	return err
}

// apply changes an instance by a rule. State and plan have times of their own: a renewal that comes first must not hide
// the suspension before it. The run that sets the state owns it from then on: what an earlier one learns of its bootstrap
// does not matter any more.
func (in RegisterInput) apply(i *Instance, r rule) error {
	newerState, newerPlan := in.olderThan(i.StateAtUtc), in.olderThan(i.PlanAtUtc)
	if (r.state != "" && newerState) || (r.state == "" && newerPlan) {
		return errSuperseded
	}
	if r.state != "" {
		in.applyState(i, r)
	}
	i.TenantID, i.Source = in.TenantID, in.Source
	if newerPlan {
		return nil
	}
	i.PlanAtUtc = later(i.PlanAtUtc, in.At)
	if in.PlanID != "" {
		i.PlanID = in.PlanID
	}
	if in.Quantity != "" {
		i.Quantity = in.Quantity
	}
	return nil
}

func (in RegisterInput) applyState(i *Instance, r rule) {
	i.StateAtUtc = later(i.StateAtUtc, in.At)
	if i.JobID == in.JobID && i.State == StateActive {
		return // a repetition that comes late must not undo a bootstrap that is over; one that failed is tried again
	}
	i.State, i.JobID = r.state, in.JobID
	if r.bootstrap {
		i.State = StateProvisioning
	}
}

// olderThan says whether the notice is; one without a time never is.
func (in RegisterInput) olderThan(t time.Time) bool { return !in.At.IsZero() && t.After(in.At) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Bootstrap is what an instance says in its event EventBootstrapped.
type Bootstrap struct {
	// Status is Succeeded or Failed.
	Status string `json:"status"`
	// Version is what it runs now, Error why it failed; both only for the history.
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
}

// maxBootstrapText bounds what an instance may say, in bytes.
const maxBootstrapText = 1 << 10

func (b Bootstrap) bounded() Bootstrap {
	b.Version = strings.ToValidUTF8(b.Version[:min(len(b.Version), maxBootstrapText)], "")
	b.Error = strings.ToValidUTF8(b.Error[:min(len(b.Error), maxBootstrapText)], "")
	return b
}

// CompleteInput says how the bootstrap of an instance ended.
type CompleteInput struct {
	InstanceID string    `json:"instanceId"`
	JobID      string    `json:"jobId"`
	Bootstrap  Bootstrap `json:"bootstrap"`
}

// Complete records in the registry how the bootstrap ended, unless a newer run owns the state. A bootstrap that failed is
// an ErrBootstrap, after it has been recorded.
func (s *Steps) Complete(ctx context.Context, in CompleteInput) (Registered, error) {
	out := Registered{InstanceID: in.InstanceID, State: StateActive}
	if in.Bootstrap.Status != "Succeeded" {
		out.State = StateFailed
	}
	err := s.config.Registry.Update(ctx, in.InstanceID, func(i *Instance) error {
		if i.JobID != in.JobID {
			out.Superseded = true
			return errSuperseded
		}
		i.State = out.State
		return nil
	})
	if err != nil && !errors.Is(err, errSuperseded) {
		return Registered{}, fmt.Errorf("record the bootstrap of instance %s: %w", in.InstanceID, err)
	}
	if out.State == StateFailed && !out.Superseded {
		return out, fmt.Errorf("%w: instance %s: %s", ErrBootstrap, in.InstanceID, in.Bootstrap.Error)
	}
	return out, nil
}
