package tables

import (
	"errors"
	"strings"
	"testing"

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

func FuzzEscapeKey(f *testing.F) {
	for _, s := range []string{"", "a", "/=~%", "\xff\x00", "=2F", "日本\u0085"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkRoundTrip(t, s)
		// What UnescapeKey takes has one escaped form.
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
