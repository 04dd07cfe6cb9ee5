package tables

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

func TestEscapeKey(t *testing.T) {
	t.Parallel()
	tests := []struct{ plain, escaped string }{
		{"", ""},
		{"6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
		{"hmac-A_b.c:9", "hmac-A_b.c:9"},
		{"/subscriptions/1", "=2Fsubscriptions=2F1"},
		{`a\b#c?d%e'f~g=h`, "a=5Cb=23c=3Fd=25e=27f=7Eg=3Dh"},
		{"\x00\x1f\x7f", "=00=1F=7F"},
		{"\u0080\u009f\u00a0", "=C2=80=C2=9F\u00a0"},
		{"\xff\xc3", "=FF=C3"},
		{"\ufffd日本𝄞", "\ufffd日本𝄞"},
	}
	for _, test := range tests {
		if got := EscapeKey(test.plain); got != test.escaped {
			t.Errorf("EscapeKey(%q) = %q, want %q", test.plain, got, test.escaped)
		}
		if got, err := UnescapeKey(test.escaped); got != test.plain || err != nil {
			t.Errorf("UnescapeKey(%q) = %q, %v, want %q", test.escaped, got, err, test.plain)
		}
	}
	for _, bad := range []string{"=", "=2", "=2f", "=GG", "a/b", "=41", "~", "\xff", "=C3=A9", "a="} {
		if got, err := UnescapeKey(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("UnescapeKey(%q) = %q, %v, want %v", bad, got, err, ErrInvalid)
		}
	}
}

func TestEscapeKeyRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "a")
		checkRoundTrip(t, a)
	})
}

func TestPrefixEnd(t *testing.T) {
	t.Parallel()
	tests := []struct{ prefix, end string }{
		{"", ""},
		{"hmac-", "hmac."},
		{"hmac-a", "hmac-b"},
		{"a9", "a:"},
		{"a.", "a0"},             // not /
		{"a&", "a("},             // not '
		{"a\"", "a$"},            // not #
		{"a$", "a&"},             // not %
		{"a>", "a@"},             // not ?
		{"a[", "a]"},             // not a backslash
		{"a~", "a\u00a0"},        // no control character
		{"=2F", "=2G"},           // of an escaped id
		{"日", "旦"},               // the next code point, not the next byte
		{"\ud7ff", "\U00010000"}, // no surrogate
		{"\uffff", ""},
		{"a\uffff", "b"},
		{"a\uffff\uffff", "b"},
		{"a\ufffe", "a\uffff"},
		{"a\U0010ffff", "a\ue000"},
		{"a\U0010ffff\U0010ffff", "a\U0010ffff\ue000"},
		{"\U0010ffff", "\ue000"},
		{"a\xff", "b"},
		{"\xff", ""},
	}
	for _, test := range tests {
		if got := PrefixEnd(test.prefix); got != test.end {
			t.Errorf("PrefixEnd(%q) = %q, want %q", test.prefix, got, test.end)
		}
	}
}

// shortText are texts of few characters, so that they meet as prefixes of each other.
func shortText(characters ...rune) *rapid.Generator[string] {
	return rapid.StringOfN(rapid.SampledFrom(characters), 0, 4, -1)
}

// The bounds hold the keys with the prefix and no others, so no smaller key would be an end.
func TestPrefixEndBounds(t *testing.T) {
	t.Parallel()
	// The neighbours of the characters that no key holds.
	text := shortText(' ', '!', '"', '$', '&', '(', '.', '0', '=', '>', '@', '[', ']', '~', 0xa0, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff)
	rapid.Check(t, func(t *rapid.T) {
		prefix, key := text.Draw(t, "prefix"), text.Draw(t, "key")
		if rapid.Bool().Draw(t, "within") {
			key = prefix + key
		}
		end := PrefixEnd(prefix)
		if end != "" {
			if err := checkKeyPart("bound", end); err != nil {
				t.Errorf("PrefixEnd(%q): %v", prefix, err)
			}
		}
		within := CompareKeys(prefix, key) <= 0 && (end == "" || CompareKeys(key, end) < 0)
		if got, want := CompareKeys(prefix, key), slices.Compare(utf16.Encode([]rune(prefix)), utf16.Encode([]rune(key))); got != want {
			t.Errorf("%q and %q compare as %d, and in UTF-16 as %d", prefix, key, got, want)
		}
		if has := strings.HasPrefix(key, prefix); within != has {
			t.Errorf("%q begins with %q: %t; is below its end %q: %t", key, prefix, has, end, within)
		}
	})
}

// An escaped prefix of an id is a prefix of that escaped id, and of no other.
func TestEscapedPrefix(t *testing.T) {
	t.Parallel()
	head := shortText('a', '/', '=', '2', 'F', '~', '.', 'é', 0x85, '𝄞', 0xfffd)
	broken := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte("a=2F/\xc3\xa9\xff")), 0, 4), func(b []byte) string { return string(b) })
	rapid.Check(t, func(t *rapid.T) {
		prefix, id := head.Draw(t, "prefix"), rapid.OneOf(head, broken).Draw(t, "id")
		if rapid.Bool().Draw(t, "within") {
			id = prefix + id
		}
		has, escaped := strings.HasPrefix(id, prefix), strings.HasPrefix(EscapeKey(id), EscapeKey(prefix))
		if has != escaped {
			t.Errorf("%q begins with %q: %t; %q with %q: %t", id, prefix, has, EscapeKey(id), EscapeKey(prefix), escaped)
		}
	})
	if half := EscapeKey("\xc3"); strings.HasPrefix(EscapeKey("é"), half) {
		t.Errorf("%q begins with half a character, %q", EscapeKey("é"), half)
	}
}

func FuzzEscapeKey(f *testing.F) {
	for _, s := range []string{"", "a", "/=~%", "\xff\x00", "=2F", "日本\u0085"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkRoundTrip(t, s)
		// A text that UnescapeKey accepts has one escaped form.
		if plain, err := UnescapeKey(s); err == nil && EscapeKey(plain) != s {
			t.Errorf("%q is unescaped to %q, which is escaped to %q", s, plain, EscapeKey(plain))
		}
	})
}

func checkRoundTrip(t interface{ Errorf(string, ...any) }, s string) {
	key := EscapeKey(s)
	if back, err := UnescapeKey(key); err != nil || back != s {
		t.Errorf("%q is escaped to %q, which is unescaped to %q, %v", s, key, back, err)
	}
	if err := checkKeyPart("key", key); err != nil && key != "" && !errors.Is(err, ErrTooLarge) {
		t.Errorf("%q is escaped to %q: %v", s, key, err)
	}
	if strings.HasPrefix(key, "~") {
		t.Errorf("%q is escaped to %q", s, key)
	}
}
