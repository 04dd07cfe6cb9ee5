package traceparent

import (
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
