package ncrontab

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
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

// What is before an occurrence leads to it.
func TestPrevIsTheOtherWayOfNext(t *testing.T) {
	t.Parallel()
	from := time.Date(2024, 2, 28, 23, 50, 0, 0, time.UTC)
	for _, text := range []string{"0 * * * * *", "30 */7 * * * *", "0 11 2 * * *", "0 26 2 * * 0", "0 0 0 13 * 5", "0 59 23 29 2 *", "0 0 */6 1,15 * *", "15 0 0 1 1 *", "0 0 9 * Jan Mon"} {
		e := testenv.Must(Parse(text))(t)
		before := e.Next(from)
		for range 60 {
			at := e.Next(before)
			if at.IsZero() {
				break
			}
			for _, later := range []time.Time{at, at.Add(-1), before.Add(1), before.Add(at.Sub(before) / 3)} {
				if got := e.Prev(later); !got.Equal(before) {
					t.Fatalf("%q: before %v is %v, want %v", text, later, got, before)
				}
			}
			before = at
		}
	}
}
