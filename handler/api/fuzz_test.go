package api

import (
	"testing"
)

// A token is taken for the filter that it was made for only, and is one that sealToken makes.
func FuzzOpenToken(f *testing.F) {
	f.Add("", "f")
	f.Add(sealToken("place", "f"), "f")
	f.Add(sealToken("place", "g"), "f")
	f.Add("e30", "f")
	f.Fuzz(func(t *testing.T, token, fingerprint string) {
		place, err := openToken(token, fingerprint)
		if err == nil && sealToken(place, fingerprint) != token {
			t.Errorf("%q is taken for %q", token, place)
		}
		if sealed := sealToken(token, fingerprint); len(sealed) <= maxToken {
			if again, err := openToken(sealed, fingerprint); (err != nil || again != token) && !invalid(token, fingerprint) {
				t.Errorf("%q does not come back: %q, %v", token, again, err)
			}
		}
	})
}

// invalid says that JSON does not keep a text.
func invalid(texts ...string) bool {
	for _, text := range texts {
		for _, r := range text {
			if r == '\uFFFD' {
				return true
			}
		}
	}
	return false
}
