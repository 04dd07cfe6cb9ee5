package poller

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fingerprint returns the hash of a definition, and the JSON that was hashed (checkpoint document, section 9).
func Fingerprint(d Definition) (fingerprint string, text json.RawMessage, err error) {
	text, err = json.Marshal(d)
	if err != nil {
		return "", nil, fmt.Errorf("%w: definition of %.64s: %w", ErrInvalid, d.Object, err)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), text, nil
}

// FingerprintError is an ErrFingerprint with the differences.
type FingerprintError struct {
	Poller string
	// Differences are lines such as `cursor: was "id", is "updated_at"`.
	Differences []string
}

// Error says what has changed, and what to do.
func (e *FingerprintError) Error() string {
	return fmt.Sprintf("%v: %s: put it back, reset the poller %s to the beginning, or accept the new definition with accept-fingerprint",
		ErrFingerprint, strings.Join(e.Differences, "; "), e.Poller)
}

// Unwrap gives ErrFingerprint.
func (e *FingerprintError) Unwrap() error { return ErrFingerprint }

// checkFingerprint compares the definition in a document with the current one.
func checkFingerprint(d *Document, fingerprint string, text json.RawMessage) error {
	if d.Fingerprint == "" || d.Fingerprint == fingerprint {
		return nil
	}
	return &FingerprintError{Poller: d.PollerName, Differences: differences(d.Definition, text)}
}

// differences compares two definitions member by member.
func differences(was, is json.RawMessage) []string {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(was, &before) != nil || json.Unmarshal(is, &after) != nil {
		return []string{"the definition before was not kept"}
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x, y := compact(before[name]), compact(after[name])
		if !bytes.Equal(x, y) {
			out = append(out, fmt.Sprintf("%s: was %s, is %s", name, displayValue(x), displayValue(y)))
		}
	}
	if len(out) == 0 {
		return []string{"the fingerprint differs, the definition does not"}
	}
	return out
}

func displayValue(value []byte) string {
	if len(value) == 0 {
		return "missing"
	}
	return fmt.Sprintf("%.512s", value)
}
