// Package keys is the seam to the key that payloads are encrypted with: a key of Azure Key Vault in production, which wraps
// and unwraps data keys and never leaves the vault, and on a developer's machine a key in the development secret store.
//
// It promises that a data key is wrapped with the newest version of the key, and unwrapped with the version that its id
// names. So a rotation of the key needs nothing: what was wrapped before is unwrapped as long as its version is enabled. No
// error or log line shows a data key.
//
// Storage keys: the development twin keeps its key as a secret, payloadkey-{name}, of the store that it is given.
package keys

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/services/secrets"
)

// These errors can be returned by both implementations; test for them with errors.Is.
var (
	// ErrNotFound: no such key or version. Somebody has to recover it.
	ErrNotFound = errors.New("no such key")
	// ErrForbidden: the identity lacks the permission, or the version is disabled or expired.
	ErrForbidden = errors.New("forbidden")
	// ErrInvalid: the key is not one that wraps keys, what is unwrapped was wrapped by another key, or the id is not one of
	// this implementation.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable: no usable answer; repeat it later.
	ErrUnavailable = errors.New("unavailable")
	// ErrNoName: no key is named, so data keys can be unwrapped only.
	ErrNoName = errors.New("no key is named to encrypt with")
)

// checkName refuses a name before it becomes part of a URL. "" is allowed: it only unwraps.
func checkName(name string) error {
	if name != "" && !secrets.ValidName(name) {
		return fmt.Errorf("%w: the name of a key has 1 to %d letters, digits and dashes", ErrInvalid, secrets.MaxName)
	}
	return nil
}

// splitID divides {name}/{version}.
func splitID(id string) (name, version string, err error) {
	name, version, ok := strings.Cut(id, "/")
	if !ok || !secrets.ValidName(name) || !secrets.ValidVersion(version) {
		return "", "", fmt.Errorf("%w: %.300q is not the id of a key: {name}/{version}", ErrInvalid, id)
	}
	return name, version, nil
}
