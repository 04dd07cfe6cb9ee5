package ncrontab

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 21, 5, 40, 30, 500, time.UTC)
	for text, want := range map[string]string{
		"0 * * * * *":     "2026-11-21T05:41:00Z",
		"*/5 * * * *":     "2026-11-21T05:45:00Z",
		"0 0 0 13 * 5":    "2027-08-13T00:00:00Z", // day of month AND weekday
		"0 0 9 * * 7":     "2026-11-22T09:00:00Z", // 7 is Sunday
		"0 0 9 * Jan Mon": "2027-01-04T09:00:00Z",
	} {
		e, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := e.Next(from).Format(time.RFC3339); got != want {
			t.Errorf("%q: next %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "often", "* * *", "0 0 0 0 * * *", "61 * * * * *", "@daily", "@every 1h", "TZ=UTC 0 * * * * *", "0 0 0 30 2 *"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is an expression", text)
		}
	}
}
