package tables

import (
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

// PrefixEnd returns the smallest part of a Key that is greater than all parts with this prefix, so the bounds prefix
// and PrefixEnd(prefix) select exactly those. It returns "", an open bound, when no part is greater. Keys compare by
// their code points.
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
		for r := last + 1; r <= utf8.MaxRune; r++ {
			if utf8.ValidRune(r) && !illegal(r) {
				return prefix + string(r)
			}
		}
	}
	return ""
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
