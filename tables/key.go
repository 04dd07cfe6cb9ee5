package tables

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789ABCDEF"

// errKeyEscape means that UnescapeKey could not decode a text; it is always wrapped with the text.
var errKeyEscape = errors.New("not an escaped key")

// EscapeKey turns any text into a legal part of a Key. The bytes of / \ # ? % ' ~ = , of control characters and of
// invalid UTF-8 become =XX (upper-case hexadecimal); everything else, such as a UUID, is unchanged. The result never
// starts with ~, so rows with that prefix cannot be forged. UnescapeKey is the inverse, and different texts have
// different results. The result can be three times as long as s: check the length of a text from outside.
func EscapeKey(s string) string {
	i := 0
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if escaped(r, size) {
			break
		}
		i += size
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	b.WriteString(s[:i])
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if escaped(r, size) {
			for _, c := range []byte(s[i : i+size]) {
				b.WriteByte('=')
				b.WriteByte(hexDigits[c>>4])
				b.WriteByte(hexDigits[c&15])
			}
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// UnescapeKey is the inverse of EscapeKey. A text that is not a result of EscapeKey is an ErrInvalid.
func UnescapeKey(s string) (string, error) {
	return unescape(s, EscapeKey)
}

// unescape is the inverse of escape, which is EscapeKey or EscapeSegment.
func unescape(s string, escape func(string) string) (string, error) {
	if !strings.Contains(s, "=") && escape(s) == s {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '=' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("unescape key %q: %w: %w", s, ErrInvalid, errKeyEscape)
		}
		hi, lo := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
		if hi < 0 || lo < 0 {
			return "", fmt.Errorf("unescape key %q: %w: %w", s, ErrInvalid, errKeyEscape)
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	out := string(b)
	// Each text has one escaped form. A second form would make two keys of one id.
	if escape(out) != s {
		return "", fmt.Errorf("unescape key %q: %w: %w", s, ErrInvalid, errKeyEscape)
	}
	return out, nil
}

// CompareKeys compares two parts of Keys in the order of storage, which is that of their UTF-16 units. It differs
// from the order of their bytes for a character above U+FFFF and one from U+E000 on: the former comes first.
func CompareKeys(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := a[i], b[i]; x != y {
			// 0xEE begins the characters from U+E000 on, 0xF0 those above U+FFFF.
			if swapped := min(x, y) >= 0xEE && max(x, y) >= 0xF0 && min(x, y) < 0xF0; swapped {
				x, y = y, x
			}
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// laterKey returns the greater of two parts of Keys.
func laterKey(a, b string) string {
	if CompareKeys(a, b) < 0 {
		return b
	}
	return a
}

// PrefixEnd is the smallest part of a Key that is greater than all that begin with prefix, so that the bounds prefix
// and PrefixEnd(prefix) hold just those; "", an open bound, when nothing is greater. Keys compare as CompareKeys does.
//
// For ids that EscapeKey made keys of, escape their prefix too. If the prefix is valid UTF-8, an id begins with it
// exactly when the escaped id begins with the escaped prefix. A prefix that ends within a character does not qualify:
// half a character is escaped, a whole one is not.
func PrefixEnd(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		if last == utf8.RuneError && size == 1 {
			continue // no key holds this byte: the end of the bytes before it is the end for all
		}
		for r, ok := nextRune(last); ok; r, ok = nextRune(r) {
			if !illegal(r) {
				return prefix + string(r)
			}
		}
	}
	return ""
}

// nextRune returns the character after another one in the order of UTF-16; ok is false after the last.
func nextRune(r rune) (next rune, ok bool) {
	switch r {
	case 0xD7FF: // behind it come the surrogates, which are characters in pairs
		return 0x10000, true
	case utf8.MaxRune:
		return 0xE000, true
	case 0xFFFF:
		return 0, false
	}
	return r + 1, true
}

func escaped(r rune, size int) bool {
	switch r {
	case '~', '=':
		return true
	case utf8.RuneError:
		return size == 1
	}
	return illegal(r)
}

// illegal reports whether a part of a Key must not contain r.
func illegal(r rune) bool {
	switch r {
	case '/', '\\', '#', '?', '%', '\'':
		return true
	}
	return control(r)
}

func control(r rune) bool { return r < 0x20 || r >= 0x7f && r <= 0x9f }
