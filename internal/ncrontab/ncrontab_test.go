package ncrontab

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestParse(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 21, 5, 40, 30, 500, time.UTC)
	for text, want := range map[string]string{
		"0 * * * * *":     "2026-11-21T05:41:00Z",
		"*/5 * * * *":     "2026-11-21T05:45:00Z",
		"0 0 0 13 * 5":    "2027-08-13T00:00:00Z", // day of month AND weekday
		"0 0 9 * * 0":     "2026-11-22T09:00:00Z", // Sunday
		"0 */60 * * * *":  "2026-11-21T06:00:00Z", // the host accepts a step that is longer than the field
		"0 0 9 * F m":     "2027-02-01T09:00:00Z", // the beginning of a name is enough
		"0 50/5 5 * * *":  "2026-11-21T05:50:00Z",
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
	for _, text := range []string{"", "often", "* * *", "0 0 0 0 * * *", "61 * * * * *", "@daily", "@every 1h", "TZ=UTC 0 * * * * *", "0 0 0 30 2 *",
		"0 0 9 * * 7", "0 0 25 * * *", "0 -5 * * * *", "0 0 9 * * FRI-MON", "0 50-10 * * * *", "0 */0 * * * *", "0 */-5 * * * *", "0 */ * * * *", "0 1,,2 * * * *", "0 1, * * * *",
		"0 0 9 L * *", "0 0 9 ? * *", "0 0 9 * * 1#2", "0 0 9 15W * *", "0 0 9 * J 1", "0 0 9 * * T", "0 0 9 * Janu2 *", "0 +5 * * * *", "0 5- * * * *", "0 1-2-3 * * * *", "0 5/5/5 * * * *",
		"0\t0 9 * * *", "0 0 9 * *\n1", "0 99999999999999999999 * * * *", "60 * * * * *", "0 60 * * * *", "0 0 24 * * *", "0 0 9 0 * *", "0 0 9 32 * *", "0 0 9 * 0 *", "0 0 9 * 13 *", "0 0 9 * * -1",
		"0 * * * * * *", "CRON_TZ=UTC 0 0 9 * * *", "00:05:00", "%SCHEDULE%", "0 0 9 * * Mon-", "*/*/2 * * * * *", "0 ** * * * *"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is an expression", text)
		}
	}
}

// Next of a time before an occurrence leads to it.
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

// hostNext returns the next occurrence as NCrontab finds it (CrontabSchedule.cs, TryGetNextOccurrence): by the sets of
// its fields, one second after the other. It is simple, and so a reference for faster code.
func hostNext(sets [6]map[int]bool, at time.Time, end time.Time) time.Time {
	at = at.Truncate(time.Second).Add(time.Second)
	for at.Before(end) {
		day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
		switch {
		case !sets[4][int(at.Month())] || !sets[3][at.Day()] || !sets[5][int(at.Weekday())]:
			at = day.AddDate(0, 0, 1)
		case !sets[2][at.Hour()]:
			at = at.Truncate(time.Hour).Add(time.Hour)
		case !sets[1][at.Minute()]:
			at = at.Truncate(time.Minute).Add(time.Minute)
		case !sets[0][at.Second()]:
			at = at.Add(time.Second)
		default:
			return at
		}
	}
	return time.Time{}
}

// Random expressions are due when the host has them due.
func TestAsTheHostReadsIt(t *testing.T) {
	t.Parallel()
	end := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var sets [6]map[int]bool
		var texts []string
		for i, f := range fields {
			set, parts := map[int]bool{}, []string{}
			for range rapid.IntRange(1, 3).Draw(t, "parts") {
				text, from, to, step := "*", f.first, f.last, 1
				if !rapid.Bool().Draw(t, "all") {
					from = rapid.IntRange(f.first, f.last).Draw(t, "from")
					to = from
					name := func(n int) string {
						if f.names == nil || rapid.Bool().Draw(t, "number") {
							return fmt.Sprintf("%0*d", rapid.IntRange(1, 3).Draw(t, "digits"), n)
						}
						whole := f.names[n-f.first]
						return rapid.SampledFrom([]string{strings.ToLower(whole), strings.ToUpper(whole[:3]), whole}).Draw(t, "name")
					}
					if text = name(from); rapid.Bool().Draw(t, "range") {
						to = rapid.IntRange(from, f.last).Draw(t, "to")
						text += "-" + name(to)
					}
				}
				if rapid.Bool().Draw(t, "stepped") {
					step = rapid.IntRange(1, 70).Draw(t, "step")
					if !strings.Contains(text, "-") {
						to = f.last
					}
					text += fmt.Sprint("/", step)
				}
				for n := from; n <= to; n += step {
					set[n] = true
				}
				parts = append(parts, text)
			}
			sets[i], texts = set, append(texts, strings.Join(parts, ","))
		}
		text := strings.Join(texts, rapid.SampledFrom([]string{" ", "  "}).Draw(t, "space"))
		at := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "at"), 0).UTC()
		e, err := Parse(text)
		if err != nil {
			if errors.Is(err, ErrNeverDue) && hostNext(sets, at, end).IsZero() {
				return
			}
			t.Fatalf("%q: %v", text, err)
		}
		for range 5 {
			want := hostNext(sets, at, end)
			if want.IsZero() {
				return
			}
			if at = e.Next(at); !at.Equal(want) {
				t.Fatalf("%q: %v, want %v", text, at, want)
			}
		}
	})
}
