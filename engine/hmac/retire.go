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

// Arrivals knows whether consumers have a version; *consumers.Consumers does. It is safe for concurrent use.
type Arrivals interface {
	// Arrived says what is waited for before something may be retired, nil when there is nothing.
	Arrived(ctx context.Context, q consumers.Question) (*consumers.Waiting, error)
	// Settled says that nothing of the target waits any more.
	Settled(ctx context.Context, target string) error
}

// RetireInput names the version whose grace is over.
type RetireInput struct {
	// InstanceID is the instance whose key it is, SecretName and Version name the version, as NotifyOutput does. Required.
	InstanceID string `json:"instanceId"`
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
	// GraceEndsAtUtc has been waited for, so it is not later than that, whatever the clock of this process says.
	GraceEndsAtUtc time.Time `json:"graceEndsAtUtc"`
	// Look counts the looks of a run that waits for consumers, and is 0 for its first. Again counts the attempts before: each
	// looks anew.
	Look  int `json:"look,omitempty"`
	Again int `json:"again,omitempty"`
}

// RetireOutput lists the versions that were disabled, or says what is waited for; nothing was disabled then.
type RetireOutput struct {
	Disabled []string           `json:"disabled,omitempty"`
	Waiting  *consumers.Waiting `json:"waiting,omitempty"`
}

// ConfirmInput is what a person has decided: that consumers have the version, or need not have it.
type ConfirmInput struct {
	RetireInput
	By   string `json:"by"`
	Note string `json:"note,omitempty"`
}

// Retire disables the versions before the given one that are retired, as States has it, when this one or a later one has
// arrived at all consumers. A later version stays, whoever retires when; so does all while the given one is not what its slot
// was rotated to. It forgets slots that were over for longer than SlotKeep. Errors are ErrInput, and those of secrets, tables
// and Arrivals; it is safe to repeat after all.
func (s *Steps) Retire(ctx context.Context, in RetireInput) (RetireOutput, error) {
	return s.retire(ctx, in, false)
}

// Confirm is Retire at the word of a person: it does not matter what has arrived.
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

// wrap says what failed, if anything did.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// retirement is what Retire has to do.
type retirement struct {
	// due are the enabled versions that it has to disable, and successors those that follow them all, in their order.
	due        []string
	successors []slotRow
	// forgotten are the rows of slots that it may forget.
	forgotten []slotRow
	// now is the time, as far as the run has waited.
	now time.Time
}

// due looks for what Retire has to do.
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
	var last Slot // of those that are due, the last to become active
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

// wait says what the consumers of the successors still need; nil when they need nothing.
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

// Knows says whether consumers were told of a version of an instance's key. Errors are those of tables.
func (s *Steps) Knows(ctx context.Context, instanceID, version string) (bool, error) {
	rows, err := s.slots(ctx, instanceID)
	return slices.ContainsFunc(rows, func(r slotRow) bool { return r.version == version && r.announced() }), err
}
