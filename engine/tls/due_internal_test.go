package tls

import (
	"strings"
	"testing"
	"time"
)

// An authority is asked as often as it requests, within bounds.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for wanted, want := range map[time.Duration]time.Duration{-time.Hour: time.Minute, 0: time.Minute, 6 * time.Hour: 6 * time.Hour, 90 * 24 * time.Hour: 24 * time.Hour} {
		if got := askAgain(now, now.Add(wanted)).Sub(now); got != want {
			t.Errorf("%v: in %v, want %v", wanted, got, want)
		}
	}
	if got := askAgain(now, time.Time{}).Sub(now); got != 6*time.Hour {
		t.Errorf("an authority that does not say: in %v", got)
	}
}

// Only the address of a web page is shown to users.
func TestCheckExplanation(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"https://example.com/why?x=1": true, "": false, "javascript:alert(1)": false, "https://user:pw@example.com": false,
		"https://": false, "https://example.com/" + strings.Repeat("a", 500): false, "not a page": false} {
		if got := checkExplanation(text); (got == text && text != "") != ok || !ok && got != "" {
			t.Errorf("%.40q: %q", text, got)
		}
	}
}
