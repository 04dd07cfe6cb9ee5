package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/tables"
)

// Errors of History and DeadLetters, wrapped with the operation and its key.
var (
	// ErrIDTooLong: an id has more bytes than MaxIDLength or MaxInstanceIDLength allows; the row was not written.
	ErrIDTooLong = errors.New("id too long")
	// ErrNotFound: no entry or dead letter has this engine and row key.
	ErrNotFound = errors.New("no such row")
	// ErrFilter: the filter is not valid, or no row can match it; the text names the change to make.
	ErrFilter = errors.New("invalid filter")
	// ErrState: the dead letter's status does not allow this.
	ErrState = errors.New("the status does not allow this")
	// ErrChanged: the dead letter no longer has the caller's ETag.
	ErrChanged = errors.New("the row has changed")
	// ErrNotRetryable: the dead letter cannot be retried; the text contains the reason.
	ErrNotRetryable = errors.New("cannot be retried")
	// ErrNotEditable: no other message can replace the one of the dead letter. The error contains the reason.
	ErrNotEditable = errors.New("cannot be retried with an edited message")
	// ErrEdit: the edited message cannot be sent. The error contains the reason.
	ErrEdit = errors.New("the edited message cannot be sent")
	// ErrOtherMessage: a retry of the dead letter has begun already, with another message or with the original one.
	ErrOtherMessage = errors.New("a retry has begun with another message")
	// ErrToken: the continuation token is damaged or was made for another filter. Start again without it.
	ErrToken = errors.New("continuation token does not belong to this query")
)

const (
	// MaxIDLength bounds, in bytes, the ids in row keys: engine, correlation id and message id. A row key is the
	// escaped id, three characters a byte at worst, with a hyphen and a timestamp of 23: at most 408 of the 512 UTF-16
	// units that storage allows. The keys of index rows hold digests of fixed length.
	MaxIDLength = 128
	// MaxInstanceIDLength bounds instance ids and operation names, in bytes, because storage compares no more than 512
	// units.
	MaxInstanceIDLength = 512

	// maxErrorText bounds an error text in its row, in bytes; maxListText the same text in an index row.
	maxErrorText = 16 << 10
	maxListText  = 1 << 10
)

// timestampLayout has a fixed width, so that the part of a row key before it is unambiguous.
const timestampLayout = "20060102T150405.000000Z"

// rowKey returns the key of a main row. It depends on durable data only, so a repeated write writes the same row.
func rowKey(id string, at time.Time) string {
	return tables.EscapeKey(id) + "-" + at.UTC().Format(timestampLayout)
}

// checkID checks an id that becomes part of a key.
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

// checkTenant checks the id of a tenant in the form in which it is stored.
func checkTenant(id string) error {
	return checkLength("tenant id", cleanText(id), MaxInstanceIDLength)
}

// checkTime checks that the timestamp of a key and a column can hold t.
func checkTime(name string, t time.Time) error {
	if y := t.UTC().Year(); y < 1601 || y > 9999 {
		return fmt.Errorf("the %s %v is not of the years 1601 to 9999", name, t)
	}
	return nil
}

// truncateMicros returns t in the precision of keys and columns.
func truncateMicros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// cleanText returns a text that storage accepts as a string and returns unchanged.
func cleanText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// clip cuts a text to limit bytes without splitting a character; an ellipsis shows the cut.
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

// errorText returns an error text for storage. It is cut to four times its maximum length before the redaction,
// because that bounds the cost, and cut to the maximum length afterwards. So the second cut removes a secret that the
// first cut made unrecognizable.
func errorText(text string) string {
	return clip(cleanText(Redact(clip(text, 4*maxErrorText))), maxErrorText)
}

// mainKey returns the key of the main row with this name. ok is false for an impossible name: one that is not an
// escaped id with a timestamp, or the name of an index row, which begins with ~.
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

// cutTimestamp splits a row key into the escaped id and the timestamp.
func cutTimestamp(row string) (id, at string, ok bool) {
	cut := len(row) - len(timestampLayout)
	if cut < 2 || row[cut-1] != '-' {
		return "", "", false
	}
	return row[:cut-1], row[cut:], true
}
