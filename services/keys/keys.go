// Package keys is the interface to the key that encrypts payloads. In production it is a key of Azure Key Vault, which
// wraps and unwraps data keys and never leaves the vault. On a developer's machine it is a key in the development
// secret store.
//
// A data key is wrapped with the newest version of the key, and unwrapped with the version in its id. So a rotation of
// the key needs no other change: older data keys are unwrapped as long as their version is enabled. No error or log
// line contains a data key.
//
// Storage keys: the development twin keeps its key as a secret, payloadkey-{name}, of the given store.
package keys

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vibedata/roundhouse/services/secrets"
)

// These errors can be returned by both implementations; test for them with errors.Is.
var (
	// ErrNotFound means that the key or version does not exist. An operator has to recover it.
	ErrNotFound = errors.New("no such key")
	// ErrForbidden means that the identity lacks the permission, or that the version is disabled or expired.
	ErrForbidden = errors.New("forbidden")
	// ErrInvalid means that the key cannot wrap keys, that the data was wrapped by another key, or that the id is not one
	// of this implementation.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable means that no usable answer came. Retry later.
	ErrUnavailable = errors.New("unavailable")
	// ErrNoName means that no key is named, so data keys can only be unwrapped.
	ErrNoName = errors.New("no key is named to encrypt with")
)

// checkName refuses an invalid name before it becomes part of a URL. "" is allowed: it only unwraps.
func checkName(name string) error {
	if name != "" && !secrets.ValidName(name) {
		return fmt.Errorf("%w: the name of a key has 1 to %d letters, digits and dashes", ErrInvalid, secrets.MaxName)
	}
	return nil
}

// splitID splits {name}/{version}.
func splitID(id string) (name, version string, err error) {
	name, version, ok := strings.Cut(id, "/")
	if !ok || !secrets.ValidName(name) || !secrets.ValidVersion(version) {
		return "", "", fmt.Errorf("%w: %.300q is not the id of a key: {name}/{version}", ErrInvalid, id)
	}
	return name, version, nil
}
