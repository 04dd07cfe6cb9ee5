package hmac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/services/secrets"
)

// RetireInput names the version whose grace is over.
type RetireInput struct {
	// InstanceID is the instance whose key it is, SecretName and Version name the version, as NotifyOutput does. Required.
	InstanceID string `json:"instanceId"`
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
	// GraceEndsAtUtc has been waited for, so it is not later than that, whatever the clock of this process says.
	GraceEndsAtUtc time.Time `json:"graceEndsAtUtc"`
}

// RetireOutput lists the versions that were disabled.
type RetireOutput struct {
	Disabled []string `json:"disabled,omitempty"`
}

// Retire disables the versions before the given one that are retired, as States has it. A later version stays, whoever
// retires when; so does all while the given one is not what its slot was rotated to. It forgets slots that were over for
// longer than SlotKeep. Errors are ErrInput, and those of secrets and tables; it is safe to repeat after all.
func (s *Steps) Retire(ctx context.Context, in RetireInput) (RetireOutput, error) {
	var out RetireOutput
	if err := in.validate(); err != nil {
		return out, fmt.Errorf("retire: %w", err)
	}
	due, forgotten, err := s.due(ctx, in)
	if err != nil {
		return out, fmt.Errorf("retire what %s version %s replaces: %w", in.SecretName, in.Version, err)
	}
	for _, version := range due {
		if err := s.vault.Disable(ctx, in.SecretName, version); err != nil && !errors.Is(err, secrets.ErrNotFound) {
			return out, fmt.Errorf("retire what %s version %s replaces: %w", in.SecretName, in.Version, err)
		}
		out.Disabled = append(out.Disabled, version)
	}
	if err := s.forget(ctx, forgotten); err != nil {
		return out, fmt.Errorf("forget old slots of %s: %w", in.SecretName, err)
	}
	return out, nil
}

// due are the enabled versions that Retire has to disable, and the rows of slots that it may forget.
func (s *Steps) due(ctx context.Context, in RetireInput) (due []string, forgotten []slotRow, err error) {
	rows, err := s.slots(ctx, in.InstanceID)
	if err != nil {
		return nil, nil, err
	}
	slots := slotsOf(rows)
	own := slices.IndexFunc(slots, func(s Slot) bool { return s.Version == in.Version && !s.ActiveAt.IsZero() })
	if own < 0 {
		return nil, nil, nil
	}
	versions, err := s.vault.Versions(ctx, in.SecretName)
	if err != nil {
		return nil, nil, err
	}
	now := s.now()
	if now.Before(in.GraceEndsAtUtc) {
		now = in.GraceEndsAtUtc
	}
	states := States(versions, slots, now)
	for i, v := range versions {
		older := slices.ContainsFunc(slots, func(s Slot) bool { return s.Version == v.Version && byActivity(s, slots[own]) < 0 })
		if v.Enabled && states[i] == StateRetired && older {
			due = append(due, v.Version)
		}
	}
	return due, old(rows, rows[own], versions, s.now()), nil
}
