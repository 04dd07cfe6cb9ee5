package poller

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fingerprint returns the hash of a definition, and the hashed JSON (checkpoint document, section 9).
func Fingerprint(d Definition) (fingerprint string, text json.RawMessage, err error) {
	text, err = json.Marshal(d)
	if err != nil {
		return "", nil, fmt.Errorf("%w: definition of %.64s: %w", ErrInvalid, d.Object, err)
	}
	return hashOf(text), text, nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// FingerprintError is an ErrFingerprint with the differences.
type FingerprintError struct {
	Poller string
	// Differences are lines such as `cursor: was "id", is "updated_at"`.
	Differences []string
	// database means that the database differs, other that another part does.
	database, other bool
}

// Error names the differences and the commands that resolve them.
func (e *FingerprintError) Error() string {
	return fmt.Sprintf("%v: %s: undo the change; or, if the rows and their order are the same, run `roundhouse poller accept-fingerprint %s`; "+
		"or else `roundhouse poller reset-to-beginning %s`", ErrFingerprint, strings.Join(e.Differences, "; "), e.Poller, e.Poller)
}

// Unwrap returns ErrFingerprint.
func (e *FingerprintError) Unwrap() error { return ErrFingerprint }

// database identifies the database of a definition.
type database struct {
	Address string `json:"database"`
	ID      string `json:"databaseId"`
}

// databaseOf reads it from the text of a definition. An older or damaged definition has none.
func databaseOf(definition json.RawMessage) (d database) {
	if json.Unmarshal(definition, &d) != nil {
		return database{}
	}
	return d
}

// same reports whether two descriptions can be of one database. Equal ids are one database at any address, and
// different ids are two databases at any address. Without two ids, the addresses decide.
func (d database) same(o database) bool {
	switch {
	case d.ID != "" && o.ID != "":
		return d.ID == o.ID
	case d.Address != "" && o.Address != "":
		return d.Address == o.Address
	}
	return true
}

// databaseMembers are the members of a definition that same compares.
var databaseMembers = []string{"database", "databaseId"}

// databaseID returns the id of a source's database, "" without one.
func databaseID(ctx context.Context, s Source) (string, error) {
	source, ok := s.(Identifier)
	if !ok {
		return "", nil
	}
	id, err := source.DatabaseID(ctx)
	if err != nil {
		return "", fmt.Errorf("identify the database: %w", err)
	}
	return id, nil
}

// definitionFor returns a definition and its fingerprint for a document: parts that are unknown now, but known to the
// document, stay. The error is an ErrFingerprint when the document belongs to another definition or database.
func definitionFor(doc *Document, now Definition, id string) (fingerprint string, text json.RawMessage, err error) {
	now.DatabaseID = cmp.Or(id, now.DatabaseID)
	was := databaseOf(doc.Definition)
	if (database{now.Database, now.DatabaseID}).same(was) {
		now.Database, now.DatabaseID = cmp.Or(now.Database, was.Address), cmp.Or(now.DatabaseID, was.ID)
	}
	if fingerprint, text, err = Fingerprint(now); err != nil {
		return "", nil, err
	}
	return fingerprint, text, checkFingerprint(doc, fingerprint, text)
}

// CheckDatabase queries the id of a source's database, and returns an ErrFingerprint when the checkpoint belongs to
// another database.
func (d *Document) CheckDatabase(ctx context.Context, s Source) error {
	id, err := databaseID(ctx, s)
	if err != nil {
		return err
	}
	_, _, err = definitionFor(d, s.Definition(), id)
	if changed, ok := errors.AsType[*FingerprintError](err); ok && !changed.database {
		return nil
	}
	return err
}

// checkFingerprint compares the definition in a document with another one.
func checkFingerprint(d *Document, fingerprint string, text json.RawMessage) error {
	if d.Fingerprint == "" || d.Fingerprint == fingerprint {
		return nil
	}
	lines, other := differences(d.Definition, text)
	same := databaseOf(d.Definition).same(databaseOf(text))
	if !other && same {
		if hashOf(compact(d.Definition)) == d.Fingerprint {
			return nil
		}
		lines = append(lines, "the fingerprint differs, the definition does not")
	}
	return &FingerprintError{Poller: d.PollerName, Differences: lines, database: !same, other: other}
}

// differences compares two definitions member by member. other reports whether more than the database differs.
func differences(was, is json.RawMessage) (lines []string, other bool) {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(was, &before) != nil || json.Unmarshal(is, &after) != nil {
		return []string{"the definition before was not kept"}, true
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x, y := compact(before[name]), compact(after[name])
		if bytes.Equal(x, y) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: was %s, is %s", name, displayValue(x), displayValue(y)))
		other = other || !slices.Contains(databaseMembers, name)
	}
	return lines, other
}

func displayValue(value []byte) string {
	if len(value) == 0 {
		return "missing"
	}
	return fmt.Sprintf("%.512s", value)
}
