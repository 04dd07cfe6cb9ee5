package tracing

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/traceparent"
)

// An accepted traceparent is valid, and is written unchanged except for unknown flags.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "", "00---01"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := Parse(text)
		if ok != (traceparent.Clean(text) != "") {
			t.Fatalf("%q: read as one: %v", text, ok)
		}
		if ok && Format(c)[:53] != text[:53] {
			t.Errorf("%q became %q", text, Format(c))
		}
	})
}

// One text that is not UTF-8 would fail a whole batch of spans.
func TestFailureText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("ü", maxFailure), strings.Repeat("x", maxFailure-1) + "ü", "\xff\xfe", "plain"} {
		if got := failureText(text); !utf8.ValidString(got) || len(got) > maxFailure {
			t.Errorf("%.20q became %q", text, got)
		}
	}
}
