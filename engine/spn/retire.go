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

// prompt is the part of the overlap within which an event counts as arrived at once: a tenth. Consumers that get it later have
// the rest of the overlap from then on.
const prompt = 10

// Arrivals knows whether consumers have a version; *consumers.Consumers does. It is safe for concurrent use.
type Arrivals interface {
	// Arrived says what is waited for before something may be retired, nil when there is nothing.
	Arrived(ctx context.Context, q consumers.Question) (*consumers.Waiting, error)
	// Settled says that nothing of the target waits any more.
	Settled(ctx context.Context, target string) error
}

// RetireInput names the secret that replaces the older ones.
type RetireInput struct {
	ApplicationID string `json:"applicationId"`
	Slot          string `json:"slot"`
	SecretName    string `json:"secretName"`
	Version       string `json:"version"`
	KeyID         string `json:"keyId"`
	// Look counts the looks of a run that waits for consumers, and is 0 for its first. Again counts the attempts before: each
	// looks anew.
	Look  int `json:"look,omitempty"`
	Again int `json:"again,omitempty"`
}

// Password is a password and the version that holds its value, "" when none does.
type Password struct {
	KeyID   string `json:"keyId"`
	Version string `json:"version,omitempty"`
}

// RetireOutput says which passwords are replaced: their versions are disabled now, and they are to be removed at RemoveAtUtc.
// With Waiting, nothing was disabled.
type RetireOutput struct {
	Passwords   []Password         `json:"passwords,omitempty"`
	RemoveAtUtc time.Time          `json:"removeAtUtc,omitzero"`
	Waiting     *consumers.Waiting `json:"waiting,omitempty"`
}

// ConfirmInput is what a person has decided: that consumers have the secret, or need not have it.
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
	// usable are the given version and the later ones that are enabled and whose password is there, oldest first.
	usable []secrets.Version
}

// Retire disables the versions that hold the passwords which this deployment made before the given one, when that or a later
// one has arrived at all consumers. A password that somebody else made has no part in it, nor has one that a later rotation
// made. When a later rotation has taken the place of the given one, too, the rest is left to that. Errors are ErrInput,
// ErrKeyMissing, and those of entra, secrets and Arrivals; after those it is safe to repeat.
func (s *Steps) Retire(ctx context.Context, in RetireInput) (RetireOutput, error) {
	return s.retire(ctx, in, false)
}

// Confirm is Retire at the word of a person: it does not matter what has arrived.
func (s *Steps) Confirm(ctx context.Context, in ConfirmInput) (RetireOutput, error) {
	return s.retire(ctx, in.RetireInput, true)
}

func (s *Steps) retire(ctx context.Context, in RetireInput, confirmed bool) (out RetireOutput, err error) {
	r, err := s.look(ctx, in)
	if err == nil {
		err = r.checkReplacement()
	}
	if err == nil && r.usable[0].Version == in.Version { // else a later rotation has taken its place, which sees to the rest
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

// replacedPasswords are those that the given one replaces, and those of versions whose password is gone already.
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

// look reads what there is.
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

// laterThanOwn says that a version was made after the given one, by another rotation.
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

// wait says what the consumers of the replacement still need; nil when they need nothing.
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

// replaced says whether a password has to go.
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

// stale says that a version holds a password that the given one replaces.
func (r *retirement) stale(v secrets.Version) bool {
	return v.Tags[TagKey] != "" && v.Tags[TagKey] != r.in.KeyID && r.supersedes(v)
}

// supersedes says whether the replacement takes the place of a version: one of the same slot lost against it, others have
// to be older. Of two that were made in the same second neither is; the next rotation removes both.
func (r *retirement) supersedes(v secrets.Version) bool {
	return v.Tags[TagSlot] == label(r.in.Slot) || v.Created.Before(r.own.Created)
}

// Knows says whether a version holds a password of the application. Errors are those of secrets.
func (s *Steps) Knows(ctx context.Context, applicationID, version string) (bool, error) {
	versions, err := s.config.Vault.Versions(ctx, secrets.Name(Engine, applicationID))
	return slices.ContainsFunc(versions, func(v secrets.Version) bool { return v.Version == version && v.Tags[TagKey] != "" }), err
}
