package outbox

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clip cuts a text to a number of characters, and makes it valid UTF-8.
func clip(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= limit {
		return s
	}
	n := 0
	for i := range s {
		if n == limit {
			return s[:i]
		}
		n++
	}
	return s
}

// logField returns a value for a log line, quoted if it could be mistaken for several fields.
func logField(s string) string {
	for _, r := range s {
		if r == utf8.RuneError || r == '"' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}
