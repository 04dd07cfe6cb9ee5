package provisioning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// RegisterInput is the new state of an instance.
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

// Registered is the instance in the registry.
type Registered struct {
	InstanceID string `json:"instanceId"`
	State      State  `json:"state,omitempty"`
	// Superseded means that a newer notice was already recorded, or that there was nothing to remove: nothing was
	// changed.
	Superseded bool `json:"superseded,omitempty"`
	// Kept means that the instance runs and needs no bootstrap. The histories of older versions lack it.
	Kept bool `json:"kept,omitempty"`
}

// errSuperseded leaves an instance unchanged.
var errSuperseded = errors.New("superseded")

// Register updates the registry to the notice, by compare-and-set. Repeating it changes nothing. Errors are
// ErrNotice, a *LockedError, and those of the registry.
func (s *Steps) Register(ctx context.Context, in RegisterInput) (Registered, error) {
	r, err := ruleOf(in.Action)
	if err != nil {
		return Registered{}, fmt.Errorf("%w: %w", ErrNotice, err)
	}
	out := Registered{InstanceID: in.InstanceID}
	change := func(i *Instance) error {
		e := r.on(i.State)
		out.Kept = e == keep && !in.assumed(*i)
		err := in.apply(i, r, e)
		out.State = i.State
		return err
	}
	update := func(i *Instance) error {
		if i.State == stateless {
			i.State = StateActive // an operator has registered it
		}
		return change(i)
	}
	err = s.config.Registry.Update(ctx, in.InstanceID, update)
	if errors.Is(err, ErrNotRegistered) {
		i := Instance{ID: in.InstanceID}
		if err = change(&i); err == nil {
			err = s.config.Registry.Create(ctx, i)
		}
		if errors.Is(err, ErrRegistered) {
			err = s.config.Registry.Update(ctx, in.InstanceID, update)
		}
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

// apply changes an instance by an effect of a rule. State and plan have times of their own: an early renewal must not
// hide the suspension before it. The run that sets the state owns it until another run sets it.
func (in RegisterInput) apply(i *Instance, r rule, e effect) error {
	newerState, newerPlan := in.olderThan(i.StateAtUtc), in.olderThan(i.PlanAtUtc)
	if e == skip || (r.then != keep && newerState) || (r.then == keep && newerPlan) {
		return errSuperseded
	}
	if r.then != keep {
		in.applyState(i, r, e)
	} else if i.State == stateless {
		i.State = StateActive // without an owner: no notice has set it
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

func (in RegisterInput) applyState(i *Instance, r rule, e effect) {
	i.StateAtUtc = later(i.StateAtUtc, in.At)
	switch {
	case e == keep && r.then == bootstrap && in.assumed(*i):
		i.JobID = in.JobID // it keeps running while it gets its first bootstrap command
	case e == keep:
	case i.JobID == in.JobID && i.State == StateActive:
		// A late repetition must not undo a completed bootstrap; a failed bootstrap is retried.
	case e == bootstrap:
		i.State, i.JobID = StateProvisioning, in.JobID
	default:
		i.State, i.JobID = State(e), in.JobID
	}
}

// assumed reports whether no run other than this one has set the state: the instance may never have been sent its
// bootstrap command.
func (in RegisterInput) assumed(i Instance) bool { return i.JobID == "" || i.JobID == in.JobID }

// olderThan reports whether the notice is older; a notice without a time never is.
func (in RegisterInput) olderThan(t time.Time) bool { return !in.At.IsZero() && t.After(in.At) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Bootstrap is the payload of an instance's event EventBootstrapped.
type Bootstrap struct {
	// Status is Succeeded or Failed.
	Status string `json:"status"`
	// Version is the current version, Error the reason of a failure; both only for the history.
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
}

// maxBootstrapText bounds the texts of an instance, in bytes.
const maxBootstrapText = 1 << 10

func (b Bootstrap) bounded() Bootstrap {
	b.Version = strings.ToValidUTF8(b.Version[:min(len(b.Version), maxBootstrapText)], "")
	b.Error = strings.ToValidUTF8(b.Error[:min(len(b.Error), maxBootstrapText)], "")
	return b
}

// CompleteInput is the outcome of an instance's bootstrap.
type CompleteInput struct {
	InstanceID string    `json:"instanceId"`
	JobID      string    `json:"jobId"`
	Bootstrap  Bootstrap `json:"bootstrap"`
}

// Complete records the outcome of the bootstrap in the registry. An instance that reports success while it is
// Provisioning is up, whichever run asked it. A failure counts only for the run that owns the state, and does not
// stop a running instance. A failed bootstrap is an ErrBootstrap, after it has been recorded.
func (s *Steps) Complete(ctx context.Context, in CompleteInput) (Registered, error) {
	succeeded := in.Bootstrap.Status == "Succeeded"
	out := Registered{InstanceID: in.InstanceID}
	err := s.config.Registry.Update(ctx, in.InstanceID, func(i *Instance) error {
		out.State, out.Superseded = i.State, false
		switch {
		case succeeded && i.State == StateProvisioning:
			i.State, i.JobID = StateActive, in.JobID
		case i.JobID != in.JobID:
			out.State, out.Superseded = StateActive, true
			if !succeeded {
				out.State = StateFailed
			}
			return errSuperseded
		case !succeeded && i.State == StateProvisioning:
			i.State = StateFailed
		default:
			return errSuperseded
		}
		out.State = i.State
		return nil
	})
	if err != nil && !errors.Is(err, errSuperseded) {
		return Registered{}, fmt.Errorf("record the bootstrap of instance %s: %w", in.InstanceID, err)
	}
	if !succeeded && !out.Superseded {
		return out, fmt.Errorf("%w: instance %s: %s", ErrBootstrap, in.InstanceID, in.Bootstrap.Error)
	}
	return out, nil
}
