package spn

import (
	"context"
	"fmt"

	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
)

// RetireInput names the secret that replaces the older ones.
type RetireInput struct {
	ApplicationID string `json:"applicationId"`
	Slot          string `json:"slot"`
	SecretName    string `json:"secretName"`
	Version       string `json:"version"`
	KeyID         string `json:"keyId"`
}

// retirement is one run of Retire.
type retirement struct {
	*Steps
	in       RetireInput
	kept     secrets.Version // the replacement
	keptKey  entra.Password
	versions []secrets.Version
}

// Retire removes the passwords that this deployment made before the given one, and disables the versions that hold them.
// A password that somebody else made stays, and so does one that a later rotation made. When the given one is not there,
// nothing is removed. Errors are ErrInput, ErrKeyMissing, and those of entra and secrets; after the last two it is safe
// to repeat.
func (s *Steps) Retire(ctx context.Context, in RetireInput) (struct{}, error) {
	var done struct{}
	if err := in.validate(); err != nil {
		return done, fmt.Errorf("retire: %w", err)
	}
	passwords, err := s.config.Directory.Passwords(ctx, in.ApplicationID)
	if err != nil {
		return done, fmt.Errorf("retire: %w", err)
	}
	versions, err := s.config.Vault.Versions(ctx, in.SecretName)
	if err != nil {
		return done, fmt.Errorf("retire: %w", err)
	}
	r := retirement{Steps: s, in: in, versions: versions}
	if err := r.findKept(passwords); err != nil {
		return done, fmt.Errorf("retire what %s version %s replaces: %w", in.SecretName, in.Version, err)
	}
	for _, p := range passwords {
		if !r.replaced(p) {
			continue
		}
		if err := s.config.Directory.RemovePassword(ctx, in.ApplicationID, p.KeyID); err != nil {
			return done, fmt.Errorf("retire: %w", err)
		}
	}
	for _, v := range versions {
		if v.Tags[TagKey] == "" || v.Tags[TagKey] == in.KeyID || !v.Enabled || !r.supersedes(v) {
			continue
		}
		if err := s.config.Vault.Disable(ctx, in.SecretName, v.Version); err != nil {
			return done, fmt.Errorf("retire: %w", err)
		}
	}
	return done, nil
}

// findKept makes sure that there is a replacement.
func (r *retirement) findKept(passwords []entra.Password) error {
	var listed, enabled bool
	r.keptKey, listed = find(passwords, r.in.KeyID)
	for _, v := range r.versions {
		if v.Version == r.in.Version {
			r.kept, enabled = v, v.Enabled
		}
	}
	if enabled && !listed && r.config.Now().Sub(r.kept.Created) < unlisted {
		return fmt.Errorf("password %s is not listed yet", r.in.KeyID)
	}
	if !listed || !enabled {
		return fmt.Errorf("%w: password %s is there: %t, its version in the secret store is usable: %t; nothing was removed, rotate under another slot",
			ErrKeyMissing, r.in.KeyID, listed, enabled)
	}
	return nil
}

// replaced says whether a password has to go.
func (r *retirement) replaced(p entra.Password) bool {
	if p.KeyID == r.in.KeyID || !r.ours(p) {
		return false
	}
	if v, stored := versionOf(r.versions, p.KeyID); stored {
		return r.supersedes(v)
	}
	orphan := r.config.Now().Sub(p.Start) >= inFlight
	return orphan && (p.DisplayName == r.mark(r.in.Slot) || p.Start.Before(r.keptKey.Start))
}

// supersedes says whether the replacement takes the place of a version: one of the same slot lost against it, others have
// to be older. Of two that were made in the same second neither is; the next rotation removes both.
func (r *retirement) supersedes(v secrets.Version) bool {
	return v.Tags[TagSlot] == label(r.in.Slot) || v.Created.Before(r.kept.Created)
}
