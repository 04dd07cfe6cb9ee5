package hmac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Arrivals knows whether consumers have a version; *consumers.Consumers implements it. It is safe for concurrent use.
type Arrivals interface {
	// Arrived returns the reason why predecessors may not be retired yet, nil for none.
	Arrived(ctx context.Context, q consumers.Question) (*consumers.Waiting, error)
	// Settled records that the target no longer waits.
	Settled(ctx context.Context, target string) error
}

// RetireInput names the version whose grace is over.
type RetireInput struct {
	// InstanceID is the instance of the key, SecretName and Version name the version, as NotifyOutput does. Required.
	InstanceID string `json:"instanceId"`
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
	// GraceEndsAtUtc has passed, even if this process's clock is behind.
	GraceEndsAtUtc time.Time `json:"graceEndsAtUtc"`
	// Look counts the checks of a run that waits for consumers, and is 0 for its first. Again counts the previous
	// attempts: each checks again.
	Look  int `json:"look,omitempty"`
	Again int `json:"again,omitempty"`
}

// RetireOutput lists the disabled versions, or the reason to wait; no version was disabled then.
type RetireOutput struct {
	Disabled []string           `json:"disabled,omitempty"`
	Waiting  *consumers.Waiting `json:"waiting,omitempty"`
}

// ConfirmInput is an operator's decision that consumers have the version, or need not have it.
type ConfirmInput struct {
	RetireInput
	By   string `json:"by"`
	Note string `json:"note,omitempty"`
}

// Retire disables the retired predecessors (States) of the given version, when this one or a later one has arrived at
// all consumers. It never disables a later version, and disables nothing while the given one is not its slot's
// version. It removes slots that ended longer ago than SlotKeep. Errors are ErrInput, and those of secrets, tables
// and Arrivals; it is safe to repeat after all.
func (s *Steps) Retire(ctx context.Context, in RetireInput) (RetireOutput, error) {
	return s.retire(ctx, in, false)
}

// Confirm is Retire by an operator's decision, regardless of arrivals.
func (s *Steps) Confirm(ctx context.Context, in ConfirmInput) (RetireOutput, error) {
	return s.retire(ctx, in.RetireInput, true)
}

func (s *Steps) retire(ctx context.Context, in RetireInput, confirmed bool) (RetireOutput, error) {
	var out RetireOutput
	if err := in.validate(); err != nil {
		return out, fmt.Errorf("retire: %w", err)
	}
	r, err := s.due(ctx, in)
	if err == nil && !confirmed {
		out.Waiting, err = s.wait(ctx, in, r)
	}
	if err == nil && confirmed {
		err = s.arrivals.Settled(ctx, in.InstanceID)
	}
	if err != nil || out.Waiting != nil {
		return out, wrap(err, "retire what %s version %s replaces", in.SecretName, in.Version)
	}
	for _, version := range r.due {
		if err := s.vault.Disable(ctx, in.SecretName, version); err != nil && !errors.Is(err, secrets.ErrNotFound) {
			return out, fmt.Errorf("retire what %s version %s replaces: %w", in.SecretName, in.Version, err)
		}
		out.Disabled = append(out.Disabled, version)
	}
	return out, wrap(s.forget(ctx, r.forgotten), "forget old slots of %s", in.SecretName)
}

// wrap adds the operation to an error; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// retirement is the work of Retire.
type retirement struct {
	// due are the enabled versions to disable, and successors the versions that follow them all, in order.
	due        []string
	successors []slotRow
	// forgotten are the rows of slots to remove.
	forgotten []slotRow
	// now is the time, at least the one that the run has waited for.
	now time.Time
}

// due finds the work of Retire.
func (s *Steps) due(ctx context.Context, in RetireInput) (r retirement, err error) {
	rows, err := s.slots(ctx, in.InstanceID)
	if err != nil {
		return r, err
	}
	slots := slotsOf(rows)
	own := slices.IndexFunc(slots, func(s Slot) bool { return s.Version == in.Version && !s.ActiveAt.IsZero() })
	if own < 0 {
		return r, nil
	}
	versions, err := s.vault.Versions(ctx, in.SecretName)
	if err != nil {
		return r, err
	}
	if r.now = s.now(); r.now.Before(in.GraceEndsAtUtc) {
		r.now = in.GraceEndsAtUtc
	}
	states := States(versions, slots, r.now)
	var last Slot // of the due slots, the last to become active
	for i, v := range versions {
		at := slices.IndexFunc(slots, func(s Slot) bool { return s.Version == v.Version && byActivity(s, slots[own]) < 0 })
		if !v.Enabled || states[i] != StateRetired || at < 0 {
			continue
		}
		r.due = append(r.due, v.Version)
		if byActivity(slots[at], last) > 0 {
			last = slots[at]
		}
	}
	for _, s := range announced(versions, slots) {
		if byActivity(s, last) > 0 {
			r.successors = append(r.successors, rows[slices.IndexFunc(rows, func(r slotRow) bool { return r.slot == s.Name })])
		}
	}
	r.forgotten = old(rows, rows[own], versions, s.now())
	return r, nil
}

// wait returns the reason why consumers of the successors need more time; nil for none.
func (s *Steps) wait(ctx context.Context, in RetireInput, r retirement) (*consumers.Waiting, error) {
	atOnce := slices.ContainsFunc(r.successors, func(row slotRow) bool { return row.graceEndsAt.Equal(row.activeAt) })
	if len(r.due) == 0 || atOnce {
		if in.Look == 0 {
			return nil, nil
		}
		return nil, s.arrivals.Settled(ctx, in.InstanceID)
	}
	q := consumers.Question{Target: in.InstanceID, Retires: r.due, Waited: in.Look > 0, Now: r.now}
	for _, row := range r.successors {
		event := eventOf(row.tenantID, row.instanceID, row.secretName, row.version)
		q.Versions = append(q.Versions, consumers.Version{Version: row.version, TenantID: event.TenantID, EventID: s.publisher.ID(event),
			From: row.activeAt, Grace: row.graceEndsAt.Sub(row.activeAt)})
	}
	return s.arrivals.Arrived(ctx, q)
}

// Knows reports whether a version of an instance's key was announced. Errors are those of tables.
func (s *Steps) Knows(ctx context.Context, instanceID, version string) (bool, error) {
	rows, err := s.slots(ctx, instanceID)
	return slices.ContainsFunc(rows, func(r slotRow) bool { return r.version == version && r.announced() }), err
}
