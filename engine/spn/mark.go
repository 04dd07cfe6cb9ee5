package spn

import (
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Tags of a version in the secret store.
const (
	TagSlot    = "rotationSlot"
	TagKey     = "rotationKeyId"
	TagJob     = "rotationJobId"
	TagExpires = "rotationExpiresAtUtc"
)

// unlisted is the time for which a new password may be missing from Graph's lists.
const unlisted = 10 * time.Minute

// marked returns the prefix of the display names of this deployment's passwords.
func (s *Steps) marked() string { return "roundhouse/" + s.config.Owner + "/" }

// mark returns the display name of a slot's password.
func (s *Steps) mark(slot string) string { return s.marked() + label(slot) }

// ours reports whether this deployment made a password.
func (s *Steps) ours(p entra.Password) bool { return strings.HasPrefix(p.DisplayName, s.marked()) }

// find finds a password by its key id.
func find(passwords []entra.Password, keyID string) (entra.Password, bool) {
	at := slices.IndexFunc(passwords, func(p entra.Password) bool { return p.KeyID == keyID })
	if at < 0 {
		return entra.Password{}, false
	}
	return passwords[at], true
}

// versionOf finds the version with the value of a password, the oldest of several.
func versionOf(versions []secrets.Version, keyID string) (secrets.Version, bool) {
	at := slices.IndexFunc(versions, func(v secrets.Version) bool { return v.Tags[TagKey] == keyID })
	if at < 0 {
		return secrets.Version{}, false
	}
	return versions[at], true
}
