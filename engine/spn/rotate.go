package spn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
)

// rotateTimeout bounds an attempt at Rotate. inFlight is the age from which a password that is not in the secret
// store will never get there: its attempt timed out long ago, even if the clocks differ.
const (
	rotateTimeout = time.Minute
	inFlight      = 3 * rotateTimeout
)

// storeTries bounds the writes of a value to a secret store that does not answer.
const storeTries = 3

// RotateInput names the secret to make.
type RotateInput struct {
	// ApplicationID is the application (client) id, a UUID in lower case. Required.
	ApplicationID string `json:"applicationId"`
	// Slot names the occurrence of the schedule, for example 2026-11; one slot is one rotation. Required.
	Slot string `json:"slot"`
	// JobID is the calling run, for operators who read the tags. Required.
	JobID string `json:"jobId"`
	// Again counts the previous attempts: each has to check again, because the password may be removed since.
	// Otherwise the answer is the same.
	Again int `json:"again,omitempty"`
}

// RotateOutput names the slot's secret; it holds nothing secret.
type RotateOutput struct {
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
	KeyID      string `json:"keyId"`
	Slot       string `json:"slot"`
	// CreatedAtUtc is when the secret store made the version, ExpiresAtUtc the expiry of the password; whole seconds.
	CreatedAtUtc time.Time `json:"createdAtUtc"`
	ExpiresAtUtc time.Time `json:"expiresAtUtc"`
	// Over means that a later rotation has replaced the slot's password: consumers need no announcement.
	Over bool `json:"over,omitempty"`
}

// rotation is one run of Rotate.
type rotation struct {
	*Steps
	in   RotateInput
	name string // of the secret
	mark string // the display name
}

// Rotate makes sure that the slot has a password whose value is in the secret store, and names it. Repeating it
// returns the same while that password and its version exist, or after a later rotation has replaced them. Errors are
// ErrInput, ErrInFlight, and those of entra and secrets; it is safe to repeat after all.
func (s *Steps) Rotate(ctx context.Context, in RotateInput) (RotateOutput, error) {
	if err := in.validate(); err != nil {
		return RotateOutput{}, fmt.Errorf("rotate: %w", err)
	}
	r := rotation{Steps: s, in: in, name: secrets.Name(Engine, in.ApplicationID), mark: s.mark(in.Slot)}
	version, over, err := r.run(ctx)
	if err != nil {
		return RotateOutput{}, fmt.Errorf("rotate %s slot %q: %w", r.name, label(in.Slot), err)
	}
	// An unreadable tag yields the zero time: it is for display only.
	expires, _ := time.Parse(time.RFC3339, version.Tags[TagExpires])
	return RotateOutput{SecretName: r.name, Version: version.Version, KeyID: version.Tags[TagKey], Slot: in.Slot,
		CreatedAtUtc: version.Created.UTC(), ExpiresAtUtc: expires, Over: over}, nil
}

func (r rotation) run(ctx context.Context) (version secrets.Version, over bool, err error) {
	// In this order: a value that is written to the store meanwhile is seen there.
	passwords, err := r.config.Directory.Passwords(ctx, r.in.ApplicationID)
	if err != nil {
		return version, false, err
	}
	versions, err := r.config.Vault.Versions(ctx, r.name)
	if err != nil {
		return version, false, err
	}
	if made, ok := r.made(passwords, versions); ok {
		return made, false, nil
	}
	if past, ok := r.past(passwords, versions); ok {
		return past, true, nil
	}
	if err := r.removeOrphans(ctx, passwords, versions); err != nil {
		return version, false, err
	}
	version, err = r.add(ctx)
	return version, false, err
}

// past finds the slot's last version if it is disabled and a later rotation has a usable one.
func (r rotation) past(passwords []entra.Password, versions []secrets.Version) (last secrets.Version, over bool) {
	for _, v := range versions { // oldest first
		key, slot := v.Tags[TagKey], v.Tags[TagSlot]
		if key != "" && slot == label(r.in.Slot) {
			last, over = v, false
			continue
		}
		_, listed := find(passwords, key)
		over = over || last.Version != "" && v.Created.After(last.Created) && key != "" && v.Enabled && listed
	}
	return last, over
}

// made finds the slot's version: the oldest usable one whose password exists, or is too young to show in a list.
func (r rotation) made(passwords []entra.Password, versions []secrets.Version) (secrets.Version, bool) {
	at := slices.IndexFunc(versions, func(v secrets.Version) bool {
		if !v.Enabled || v.Tags[TagKey] == "" || v.Tags[TagSlot] != label(r.in.Slot) {
			return false
		}
		_, listed := find(passwords, v.Tags[TagKey])
		return listed || r.config.Now().Sub(v.Created) < unlisted
	})
	if at < 0 {
		return secrets.Version{}, false
	}
	return versions[at], true
}

// removeOrphans removes the slot's passwords whose value is lost: an attempt died, or lost an answer, between Graph
// and the secret store. Those of other slots are left to Retire, which removes nothing without a replacement. If the
// store lists no version, nothing is removed: a deleted secret looks like that, too, while its value is in use.
func (r rotation) removeOrphans(ctx context.Context, passwords []entra.Password, versions []secrets.Version) error {
	for _, p := range passwords {
		if _, stored := versionOf(versions, p.KeyID); stored || p.DisplayName != r.mark {
			continue
		}
		if age := r.config.Now().Sub(p.Start); age < inFlight {
			return fmt.Errorf("%w: password %s is not in the secret store and %s old; it is removed when it is %s old",
				ErrInFlight, p.KeyID, age.Round(time.Second), inFlight)
		}
		if len(versions) == 0 {
			continue
		}
		if err := r.config.Directory.RemovePassword(ctx, r.in.ApplicationID, p.KeyID); err != nil {
			return err
		}
	}
	return nil
}

// add makes a password and stores its value.
func (r rotation) add(ctx context.Context) (secrets.Version, error) {
	end := r.config.Now().Add(r.config.Lifetime)
	password, value, err := r.config.Directory.AddPassword(ctx, r.in.ApplicationID, r.mark, end)
	if err != nil {
		return secrets.Version{}, err
	}
	defer clear(value)
	version, err := r.store(ctx, password, value)
	if err != nil && refused(err) {
		// The value is lost. If this fails, too, the next attempt finds an orphan.
		err = errors.Join(err, r.config.Directory.RemovePassword(ctx, r.in.ApplicationID, password.KeyID))
	}
	return version, err
}

// store puts the value into the secret store. Without an answer it checks, and retries: two versions with the same
// value do no harm, and only this function has the value.
func (r rotation) store(ctx context.Context, password entra.Password, value []byte) (version secrets.Version, err error) {
	tags := map[string]string{TagSlot: label(r.in.Slot), TagKey: password.KeyID, TagJob: label(r.in.JobID),
		TagExpires: password.End.UTC().Format(time.RFC3339)}
	for range storeTries {
		if version, err = r.config.Vault.Add(ctx, r.name, value, tags); err == nil || !errors.Is(err, secrets.ErrOutcomeUnknown) {
			return version, err
		}
		versions, listErr := r.config.Vault.Versions(ctx, r.name)
		if found, ok := versionOf(versions, password.KeyID); listErr == nil && ok {
			return found, nil
		}
	}
	return secrets.Version{}, err
}

// refused reports whether a secret store certainly did not store a value.
func refused(err error) bool {
	return slices.ContainsFunc([]error{secrets.ErrInvalid, secrets.ErrForbidden, secrets.ErrDeleted, secrets.ErrThrottled},
		func(kind error) bool { return errors.Is(err, kind) })
}
