package api

import (
	"testing"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
)

// A token leads to the place that it was made for, however the place is written, and for its own filter only.
func FuzzPairOfTokens(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		place, filter := s.Text(1000), fingerprintOf(s.Text(100), s.Time())
		token := sealToken(place, filter)
		if (token == "") != (place == "") {
			t.Fatalf("%q has the token %q", place, token)
		}
		got, err := openToken(token, filter)
		if len(token) > maxToken {
			return // no list has such places
		}
		if err != nil || got != place {
			t.Errorf("%q becomes %q, %v", place, got, err)
		}
		if _, err := openToken(token, filter+"x"); (err == nil) != (place == "") {
			t.Errorf("another filter takes %q: %v", place, err)
		}
	})
}
