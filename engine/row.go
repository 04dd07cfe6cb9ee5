package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/tables"
)

// These errors come from History and DeadLetters, wrapped with the operation and its key.
var (
	// ErrIDTooLong: an id has more bytes than MaxIDLength or MaxInstanceIDLength allows; the row was not written.
	ErrIDTooLong = errors.New("id too long")
	// ErrNotFound: there is no entry or dead letter of this engine and row key.
	ErrNotFound = errors.New("no such row")
	// ErrFilter: a filter that no row can match or that is out of bounds; the text says what to change.
	ErrFilter = errors.New("invalid filter")
	// ErrState: the dead letter's status does not allow this.
	ErrState = errors.New("the status does not allow this")
	// ErrChanged: the dead letter is not any more what the caller's ETag names.
	ErrChanged = errors.New("the row has changed")
	// ErrNotRetryable: the dead letter cannot be sent again; the text says why.
	ErrNotRetryable = errors.New("cannot be retried")
	// ErrToken: the continuation token is damaged or was given for another filter. Begin again without it.
	ErrToken = errors.New("continuation token does not belong to this query")
)

const (
	// MaxIDLength bounds, in bytes, the ids that row keys are built of: engine, correlation id and message id. A row
	// key is the escaped id, three characters a byte at worst, with a hyphen and a timestamp of 23: 408 of the 512
	// UTF-16 units that storage takes. Index rows do not count: their keys hold digests of fixed length.
	MaxIDLength = 128
	// MaxInstanceIDLength bounds instance ids and operation names, in bytes: storage compares no more than 512 units.
	MaxInstanceIDLength = 512

	// maxErrorText bounds an error text in its row, in bytes; maxListText the same text in an index row.
	maxErrorText = 16 << 10
	maxListText  = 1 << 10
)

// timestampLayout has a fixed width, so that what comes before it in a row key is never ambiguous.
const timestampLayout = "20060102T150405.000000Z"

// rowKey builds the key of a main row. Everything in it is durable, so a repeated write meets its own row.
func rowKey(id string, at time.Time) string {
	return tables.EscapeKey(id) + "-" + at.UTC().Format(timestampLayout)
}

// checkID holds a key-building id against its limit.
func checkID(name, id string) error {
	if id == "" {
		return fmt.Errorf("the %s is missing", name)
	}
	return checkLength(name, id, MaxIDLength)
}

func checkLength(name, text string, limit int) error {
	if len(text) > limit {
		return fmt.Errorf("%w: the %s has %d bytes of at most %d", ErrIDTooLong, name, len(text), limit)
	}
	return nil
}

// checkTime makes sure that both the timestamp of a key and a column can hold t.
func checkTime(name string, t time.Time) error {
	if y := t.UTC().Year(); y < 1601 || y > 9999 {
		return fmt.Errorf("the %s %v is not of the years 1601 to 9999", name, t)
	}
	return nil
}

// truncateMicros is t as keys and columns agree on it.
func truncateMicros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// cleanText makes a text that storage takes as a string and gives back unchanged.
func cleanText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// clip bounds a text to limit bytes, cutting no character; what was cut shows as an ellipsis.
func clip(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	n := limit - len(ellipsis)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + ellipsis
}

// errorText is an error text as it is stored. It is cut before the redaction, whose cost that bounds, at four times its
// length, so that a secret which the first cut leaves unrecognisable falls to the second.
func errorText(text string) string {
	return clip(cleanText(Redact(clip(text, 4*maxErrorText))), maxErrorText)
}

// mainKey is the key of a main row that someone asks for by name. ok is false when no main row can have it: what is not
// an escaped id with a timestamp was never written, and index rows, which begin with ~, cannot be asked for.
func mainKey(engine, row string) (key tables.Key, ok bool) {
	if engine == "" || len(engine) > MaxIDLength {
		return tables.Key{}, false
	}
	id, at, ok := cutTimestamp(row)
	if !ok || len(id) > 3*MaxIDLength {
		return tables.Key{}, false
	}
	if _, err := tables.UnescapeKey(id); err != nil {
		return tables.Key{}, false
	}
	if _, err := time.Parse(timestampLayout, at); err != nil {
		return tables.Key{}, false
	}
	return tables.Key{Partition: tables.EscapeKey(engine), Row: row}, true
}

// cutTimestamp takes a row key apart into the escaped id and the timestamp.
func cutTimestamp(row string) (id, at string, ok bool) {
	cut := len(row) - len(timestampLayout)
	if cut < 2 || row[cut-1] != '-' {
		return "", "", false
	}
	return row[:cut-1], row[cut:], true
}
