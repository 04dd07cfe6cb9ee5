package traceparent

import (
	"regexp"
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	t.Parallel()
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for text, want := range map[string]string{
		good:                                   good,
		strings.ToUpper(good):                  "",
		good + "-more":                         "",
		good[:54]:                              "",
		strings.Replace(good, "00-", "01-", 1): "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": "",
		"": "",
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := From(With(t.Context(), good)); got != good {
		t.Errorf("carried: %q", got)
	}
	if got := From(With(t.Context(), "x")); got != "" {
		t.Errorf("carried: %q", got)
	}
}

// Clean accepts the same texts as a regular expression of the form.
func FuzzClean(f *testing.F) {
	form := regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
	for _, text := range []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-ff",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-00", "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0\n", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := ""
		if form.MatchString(text) && !strings.Contains(text, "-00000000000000000000000000000000-") && !strings.Contains(text, "-0000000000000000-") {
			want = text
		}
		if got := Clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	})
}
