package poller

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Kinds returns the kinds of cursors that sources use.
func Kinds() []string {
	return []string{"integer", "integer+pk", "timestamp", "timestamp+pk", "rowversion", "xid8+seq", "lsn", "opaque"}
}

// IsZero reports whether the cursor is before the first row.
func (c Cursor) IsZero() bool { return c.Kind == "" && c.Value == "" && len(c.Tiebreaker) == 0 }

// Equal reports whether two cursors are the same position.
func (c Cursor) Equal(o Cursor) bool {
	return c.Kind == o.Kind && c.Value == o.Value && bytes.Equal(escaped(c.Tiebreaker), escaped(o.Tiebreaker))
}

// escaped returns compact JSON with <, > and & as in documents, where a position looks different from the source's.
func escaped(text json.RawMessage) []byte {
	var out bytes.Buffer
	json.HTMLEscape(&out, compact(text))
	return out.Bytes()
}

// String returns the cursor for errors and logs.
func (c Cursor) String() string {
	switch {
	case c.IsZero():
		return "the beginning"
	case len(c.Tiebreaker) == 0:
		return c.Value
	}
	return fmt.Sprintf("%s %.256s", c.Value, compact(c.Tiebreaker))
}

// UnmarshalJSON also accepts a value that is a number, as operators write it, and keeps all of its digits.
func (c *Cursor) UnmarshalJSON(data []byte) error {
	var text struct {
		Kind       string          `json:"kind"`
		Value      json.RawMessage `json:"value"`
		Tiebreaker json.RawMessage `json:"tiebreaker"`
	}
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*c = Cursor{Kind: text.Kind, Tiebreaker: object(text.Tiebreaker)}
	if len(text.Value) == 0 {
		return nil
	}
	if first := text.Value[0]; first == '-' || first >= '0' && first <= '9' {
		c.Value = string(text.Value)
		return nil
	}
	return json.Unmarshal(text.Value, &c.Value)
}

// compare compares two cursors by their values alone: -1, 0 or 1. ok is false when only the source knows the order: the
// values are neither numbers nor times, or they are equal and the keys decide.
func compare(a, b Cursor) (order int, ok bool) {
	if a.Equal(b) {
		return 0, true
	}
	if a.Kind != b.Kind {
		return 0, false
	}
	kind, _, _ := strings.Cut(a.Kind, "+")
	switch kind {
	case "integer", "xid8", "rowversion":
		x, okX := numberOf(a.Value)
		y, okY := numberOf(b.Value)
		if !okX || !okY {
			return 0, false
		}
		order = x.Cmp(y)
	case "timestamp":
		x, okX := a.Time()
		y, okY := b.Time()
		if !okX || !okY {
			return 0, false
		}
		order = x.Compare(y)
	case "lsn":
		x, okX := ParseLogPosition(a.Value)
		y, okY := ParseLogPosition(b.Value)
		return x.Compare(y), okX && okY
	}
	return order, order != 0
}

// decimal matches numbers as databases write them; an exponent would make a short text a number that fills the memory.
var decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// numberOf returns a cursor's value as a number; after 0x it is hexadecimal, like rowversions.
func numberOf(value string) (*big.Rat, bool) {
	if digits, hex := strings.CutPrefix(strings.ToLower(value), "0x"); hex {
		n, ok := new(big.Int).SetString(digits, 16)
		if !ok {
			return nil, false
		}
		return new(big.Rat).SetInt(n), true
	}
	if !decimal.MatchString(value) {
		return nil, false
	}
	return new(big.Rat).SetString(value)
}

// Time returns the value of a cursor of times, and whether it is a time.
func (c Cursor) Time() (time.Time, bool) {
	if !strings.HasPrefix(c.Kind, "timestamp") {
		return time.Time{}, false
	}
	// PostgreSQL's and MySQL's as from their sources, SQLite's as stored.
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(form, c.Value); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// check returns an error for a cursor that no source can read.
func (c Cursor) check() error {
	bad := func(why string) error {
		return fmt.Errorf("%w: cursor %.64q: %s", ErrInvalid, c.Value, why)
	}
	known := false
	for _, kind := range Kinds() {
		known = known || kind == c.Kind
	}
	kind, tie, _ := strings.Cut(c.Kind, "+")
	switch {
	case !known:
		return bad(fmt.Sprintf("kind %.32q is not one of %s", c.Kind, strings.Join(Kinds(), ", ")))
	case c.Value == "":
		return bad("it has no value")
	case tie == "pk" && len(c.Tiebreaker) == 0:
		return bad("the key columns are missing: give them as a JSON object")
	}
	if len(c.Tiebreaker) > 0 {
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(c.Tiebreaker, &keys); err != nil || len(keys) == 0 {
			return bad("the key columns are no JSON object")
		}
	}
	if kind == "integer" && !decimal.MatchString(c.Value) {
		return bad("it is no number, such as 42 or 42.5")
	}
	if _, ok := c.Time(); kind == "timestamp" && !ok {
		return bad("it is no time, such as 2026-04-07T01:23:45.123456Z")
	}
	if _, ok := ParseLogPosition(c.Value); kind == "lsn" && !ok {
		return bad("it is no place in a log, such as 16/B374D848 or 16/B374D848:12")
	}
	return c.checkFits()
}

// checkKeys returns an error for key columns that are not those of a definition, which is empty before the first run. A
// key that is the cursor column itself may be missing.
func (c Cursor) checkKeys(definition json.RawMessage) error {
	var d Definition
	if len(c.Tiebreaker) == 0 || len(definition) == 0 || json.Unmarshal(definition, &d) != nil {
		return nil
	}
	var given map[string]any
	if err := json.Unmarshal(c.Tiebreaker, &given); err != nil {
		return nil // check has reported it
	}
	named := func(name string) func(string) bool {
		return func(other string) bool { return strings.EqualFold(name, other) }
	}
	for name, value := range given {
		switch value.(type) {
		case string, float64, bool:
		default:
			return fmt.Errorf("%w: cursor %.64q: the key column %.64q is neither text nor number", ErrInvalid, c.Value, name)
		}
		if !slices.ContainsFunc(d.Keys, named(name)) {
			return fmt.Errorf("%w: cursor %.64q: %.64q is no key column: the poller has %s", ErrInvalid, c.Value, name, strings.Join(d.Keys, ", "))
		}
	}
	for _, key := range d.Keys {
		if !strings.EqualFold(key, d.Cursor) && !slices.ContainsFunc(slices.Collect(maps.Keys(given)), named(key)) {
			return fmt.Errorf("%w: cursor %.64q: the key column %s is missing", ErrInvalid, c.Value, key)
		}
	}
	return nil
}

// checkKeyTypes returns an error for a key column with another JSON type than in the present position, which comes from
// the source.
func (c Cursor) checkKeyTypes(present Cursor) error {
	var given, known map[string]json.RawMessage
	if json.Unmarshal(c.Tiebreaker, &given) != nil || json.Unmarshal(present.Tiebreaker, &known) != nil {
		return nil // one of them has no keys
	}
	for name, value := range given {
		if was, ok := known[name]; ok && (was[0] == '"') != (value[0] == '"') {
			return fmt.Errorf("%w: cursor %.64q: the key column %.64q is %.64s, but the present place has %.64s: write it in the same type", ErrInvalid, c.Value, name, value, was)
		}
	}
	return nil
}

// checkFits returns an error for a cursor that is too long for a state document.
func (c Cursor) checkFits() error {
	d := newDocument("place")
	d.Checkpoint = &Checkpoint{Cursor: c}
	if _, err := d.compact(maxCursor); err != nil {
		return fmt.Errorf("cursor %.64q: %w", c.Value, err)
	}
	return nil
}

// EventID returns the id of the event for a row: always the same for the same poller, key and cursor. It is a UUID of
// version 8 made from the SHA-256 of the parts, each after its length.
func EventID(poller string, row Row) string {
	return derive("event", poller, string(compact(row.Key)), row.Cursor.Kind, row.Cursor.Value, string(compact(row.Cursor.Tiebreaker)))
}

// batchID returns the id of a batch: the same for the same rows.
func batchID(poller string, ids []string) string {
	return "batch_" + derive(append([]string{"batch", poller}, ids[0], ids[len(ids)-1])...)
}

func derive(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	var id uuid.UUID
	copy(id[:], h.Sum(nil))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id.String()
}

// compact returns JSON without white space, and other text as it is.
func compact(text json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}
