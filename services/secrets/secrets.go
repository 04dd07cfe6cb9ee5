// Package secrets is the interface to the secret store: Azure Key Vault in production, a table in the storage emulator
// on a developer's machine.
//
// Engines can store secret values and never read them. Store has no method that returns a value, no Version holds one,
// and no error or log line of this package contains one. Adding is not idempotent in Key Vault and therefore nowhere
// here; a caller that needs one version finds its own by the tags that it set.
//
// Storage keys: the development twin owns the table named by DevelopmentTable (partition: secret name, row: version).
package secrets

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// These errors can be returned by every Store; test for them with errors.Is.
var (
	// ErrNotFound means that the secret or version does not exist.
	ErrNotFound = errors.New("not found")
	// ErrForbidden means that the identity lacks the permission, or that the version is disabled. Do not retry.
	ErrForbidden = errors.New("forbidden")
	// ErrInvalid means that the store rejects a name, value or tag. Do not retry.
	ErrInvalid = errors.New("invalid")
	// ErrDeleted means that the secret is soft-deleted, which blocks its name. An operator has to recover or purge it.
	ErrDeleted = errors.New("soft-deleted")
	// ErrThrottled means that the store is busy and the operation was not applied. Retry later.
	ErrThrottled = errors.New("throttled")
	// ErrOutcomeUnknown means that no usable answer came: the operation may or may not have been applied, now or slightly
	// later. After Add: list the versions and search for your own tag before adding again.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrNoVersion means that a secret has no usable version.
	ErrNoVersion = errors.New("it has no enabled version: add one")
)

// Limits of Key Vault, which the development twin enforces too.
const (
	// MaxValue is the size of a value in bytes: Key Vault accepts 25 KiB of text, in which bytes travel as base64.
	MaxValue = 25 * 1024 / 4 * 3
	// MaxTags is the number of tags of a version.
	MaxTags = 15
	// MaxTag is the length of a tag's name and of its value, in bytes.
	MaxTag = 256
	// MaxName is the length of a secret name.
	MaxName = 127
)

// Version describes one version of a secret, never its value.
type Version struct {
	// Name is the secret's name, see Name.
	Name string
	// Version is 32 lower-case hex digits. Its order is unrelated to age.
	Version string
	// Tags are those passed to Add; nil without any.
	Tags map[string]string
	// Created is when the store made the version: UTC, whole seconds, by the clock of the store.
	Created time.Time
	// Updated is when the version was last changed: made, disabled, or enabled again. It never comes before Created.
	Updated time.Time
	// Enabled is false while the version is disabled. The Store does not enable it again; operators can.
	Enabled bool
}

// Store is the secret store of engines. Implementations are safe for concurrent use.
type Store interface {
	// Versions lists all versions of a secret with their tags, in the order of Compare; none when the secret does not
	// exist.
	Versions(ctx context.Context, name string) ([]Version, error)
	// Add stores value (1 to MaxValue bytes) as a new, enabled version. It is not idempotent: each call makes a version,
	// and so it is never repeated here once it may have been applied; see ErrOutcomeUnknown.
	Add(ctx context.Context, name string, value []byte, tags map[string]string) (Version, error)
	// Disable makes a version unusable without deleting it. Repeating it changes nothing.
	Disable(ctx context.Context, name, version string) error
}

// Reader reads values. It is separate from Store so that code which only rotates cannot read.
type Reader interface {
	// Value returns the bytes that Add stored, ErrNotFound, or ErrForbidden when the version is disabled.
	Value(ctx context.Context, name, version string) ([]byte, error)
}

// Compare orders versions: oldest first, and by version name among those of one second.
func Compare(a, b Version) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Version, b.Version))
}

// sortVersions sorts versions in the order of Versions.
func sortVersions(versions []Version) { slices.SortFunc(versions, Compare) }
