package spn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
)

// prompt is the part of the overlap within which an event counts as arrived immediately: a tenth. Consumers that get
// it later have the rest of the overlap from then on.
const prompt = 10

// Arrivals knows whether consumers have a version; *consumers.Consumers implements it. It is safe for concurrent use.
type Arrivals interface {
	// Arrived returns the reason why predecessors may not be retired yet, nil for none.
	Arrived(ctx context.Context, q consumers.Question) (*consumers.Waiting, error)
	// Settled records that the target no longer waits.
	Settled(ctx context.Context, target string) error
}

// RetireInput names the secret that replaces the older ones.
type RetireInput struct {
	ApplicationID string `json:"applicationId"`
	Slot          string `json:"slot"`
	SecretName    string `json:"secretName"`
	Version       string `json:"version"`
	KeyID         string `json:"keyId"`
	// Look counts the checks of a run that waits for consumers, and is 0 for its first. Again counts the previous
	// attempts: each checks again.
	Look  int `json:"look,omitempty"`
	Again int `json:"again,omitempty"`
}

// Password is a password and the version with its value, "" for none.
type Password struct {
	KeyID   string `json:"keyId"`
	Version string `json:"version,omitempty"`
}

// RetireOutput lists the replaced passwords: their versions are disabled now, and they are removed at RemoveAtUtc.
// With Waiting, nothing was disabled.
type RetireOutput struct {
	Passwords   []Password         `json:"passwords,omitempty"`
	RemoveAtUtc time.Time          `json:"removeAtUtc,omitzero"`
	Waiting     *consumers.Waiting `json:"waiting,omitempty"`
}

// ConfirmInput is an operator's decision that consumers have the secret, or need not have it.
type ConfirmInput struct {
	RetireInput
	By   string `json:"by"`
	Note string `json:"note,omitempty"`
}

// retirement is one run of Retire or Remove.
type retirement struct {
	*Steps
	in        RetireInput
	own       secrets.Version // the given one
	ownKey    entra.Password
	passwords []entra.Password
	versions  []secrets.Version
	// usable are the given version and the later enabled ones with existing passwords, oldest first.
	usable []secrets.Version
}

// Retire disables the versions of this deployment's passwords before the given one, when that or a later one has
// arrived at all consumers. It ignores passwords from elsewhere and from later rotations. When a later rotation has
// replaced the given password, too, the rest is left to that rotation. Errors are ErrInput, ErrKeyMissing, and those
// of entra, secrets and Arrivals; after those it is safe to repeat.
func (s *Steps) Retire(ctx context.Context, in RetireInput) (RetireOutput, error) {
	return s.retire(ctx, in, false)
}

// Confirm is Retire by an operator's decision, regardless of arrivals.
func (s *Steps) Confirm(ctx context.Context, in ConfirmInput) (RetireOutput, error) {
	return s.retire(ctx, in.RetireInput, true)
}

func (s *Steps) retire(ctx context.Context, in RetireInput, confirmed bool) (out RetireOutput, err error) {
	r, err := s.look(ctx, in)
	if err == nil {
		err = r.checkReplacement()
	}
	if err == nil && r.usable[0].Version == in.Version { // else a later rotation has replaced it, and does the rest
		out.Passwords = r.replacedPasswords()
	}
	if err == nil {
		out.Waiting, err = r.wait(ctx, out.Passwords, confirmed)
	}
	if err != nil {
		return RetireOutput{}, fmt.Errorf("retire what %s version %s replaces: %w", in.SecretName, in.Version, err)
	}
	if len(out.Passwords) == 0 || out.Waiting != nil {
		return RetireOutput{Waiting: out.Waiting}, nil
	}
	for _, v := range r.versions {
		if !v.Enabled || !r.stale(v) {
			continue
		}
		if err := s.config.Vault.Disable(ctx, in.SecretName, v.Version); err != nil {
			return RetireOutput{}, fmt.Errorf("retire what %s version %s replaces: %w", in.SecretName, in.Version, err)
		}
	}
	out.RemoveAtUtc = s.config.Now().UTC().Truncate(time.Second).Add(s.config.RemoveAfter)
	return out, nil
}

// replacedPasswords returns the passwords that the given one replaces, and those of versions whose password is
// already removed.
func (r *retirement) replacedPasswords() (all []Password) {
	for _, p := range r.passwords {
		if r.replaced(p) {
			v, _ := versionOf(r.versions, p.KeyID)
			all = append(all, Password{p.KeyID, v.Version})
		}
	}
	for _, v := range r.versions {
		if _, listed := find(r.passwords, v.Tags[TagKey]); v.Enabled && !listed && r.stale(v) {
			all = append(all, Password{v.Tags[TagKey], v.Version})
		}
	}
	return all
}

// look reads the current passwords and versions.
func (s *Steps) look(ctx context.Context, in RetireInput) (*retirement, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	passwords, err := s.config.Directory.Passwords(ctx, in.ApplicationID)
	if err != nil {
		return nil, err
	}
	versions, err := s.config.Vault.Versions(ctx, in.SecretName)
	if err != nil {
		return nil, err
	}
	r := &retirement{Steps: s, in: in, passwords: passwords, versions: versions}
	r.ownKey, _ = find(passwords, in.KeyID)
	for _, v := range versions {
		if v.Version == in.Version {
			r.own = v
		}
	}
	for _, v := range versions {
		_, listed := find(passwords, v.Tags[TagKey])
		if own := v.Version == in.Version; v.Enabled && listed && (own || r.laterThanOwn(v)) {
			r.usable = append(r.usable, v)
		}
	}
	return r, nil
}

// laterThanOwn reports whether a version was made after the given one, by another rotation.
func (r *retirement) laterThanOwn(v secrets.Version) bool {
	return r.own.Version != "" && v.Tags[TagKey] != "" && v.Created.After(r.own.Created) && v.Tags[TagSlot] != label(r.in.Slot)
}

// checkReplacement makes sure that there is a replacement.
func (r *retirement) checkReplacement() error {
	if len(r.usable) > 0 {
		return nil
	}
	_, listed := find(r.passwords, r.in.KeyID)
	if r.own.Enabled && !listed && r.config.Now().Sub(r.own.Created) < unlisted {
		return fmt.Errorf("password %s is not listed yet", r.in.KeyID)
	}
	return fmt.Errorf("%w: password %s is there: %t, its version in the secret store is usable: %t; nothing was removed, rotate under another slot",
		ErrKeyMissing, r.in.KeyID, listed, r.own.Enabled)
}

// wait returns the reason why consumers of the replacement need more time; nil for none.
func (r *retirement) wait(ctx context.Context, passwords []Password, confirmed bool) (*consumers.Waiting, error) {
	arrivals := r.config.Arrivals
	if confirmed || len(passwords) == 0 {
		if r.in.Look == 0 {
			return nil, nil
		}
		return nil, arrivals.Settled(ctx, r.in.ApplicationID)
	}
	q := consumers.Question{Target: r.in.ApplicationID, Waited: r.in.Look > 0}
	for _, p := range passwords {
		q.Retires = append(q.Retires, cmp.Or(p.Version, p.KeyID))
	}
	tenant := cmp.Or(orchestrator.Info(ctx).TenantID, engine.PublisherInstance)
	for _, v := range r.usable {
		q.Versions = append(q.Versions, consumers.Version{Version: v.Version, TenantID: tenant,
			EventID: r.config.EventID(tenant, EventRotated, rotatedKey(v.Tags[TagKey])), Grace: r.config.Overlap / prompt * (prompt - 1)})
	}
	return arrivals.Arrived(ctx, q)
}

// replaced reports whether a password is to be removed.
func (r *retirement) replaced(p entra.Password) bool {
	if p.KeyID == r.in.KeyID || !r.ours(p) {
		return false
	}
	if v, stored := versionOf(r.versions, p.KeyID); stored {
		return r.supersedes(v)
	}
	orphan := r.config.Now().Sub(p.Start) >= inFlight
	return orphan && (p.DisplayName == r.mark(r.in.Slot) || p.Start.Before(r.ownKey.Start))
}

// stale reports whether a version holds a password that the given one replaces.
func (r *retirement) stale(v secrets.Version) bool {
	return v.Tags[TagKey] != "" && v.Tags[TagKey] != r.in.KeyID && r.supersedes(v)
}

// supersedes reports whether the replacement takes the place of a version: one of the same slot lost against it,
// others have to be older. Two versions from the same second supersede neither; the next rotation removes both.
func (r *retirement) supersedes(v secrets.Version) bool {
	return v.Tags[TagSlot] == label(r.in.Slot) || v.Created.Before(r.own.Created)
}

// Knows reports whether a version holds a password of the application. Errors are those of secrets.
func (s *Steps) Knows(ctx context.Context, applicationID, version string) (bool, error) {
	versions, err := s.config.Vault.Versions(ctx, secrets.Name(Engine, applicationID))
	return slices.ContainsFunc(versions, func(v secrets.Version) bool { return v.Version == version && v.Tags[TagKey] != "" }), err
}
