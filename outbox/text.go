package outbox

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clip cuts a text after so many characters, and makes it text that a row can hold.
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

// logField is a value as a log line shows it: as it is, or quoted when it could be taken for more than one.
func logField(s string) string {
	for _, r := range s {
		if r == utf8.RuneError || r == '"' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}
