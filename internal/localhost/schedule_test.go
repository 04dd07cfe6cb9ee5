package localhost

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 21, 5, 40, 30, 500, time.UTC)
	for text, test := range map[string]struct {
		next      string
		monitored bool
	}{
		"0 * * * * *":     {"2026-11-21T05:41:00Z", true},
		"*/30 * * * * *":  {"2026-11-21T05:41:00Z", false},
		"0,50 59 * * * *": {"2026-11-21T05:59:00Z", false},
		"*/5 * * * *":     {"2026-11-21T05:45:00Z", true},
		"0 0 0 13 * 5":    {"2027-08-13T00:00:00Z", true}, // day of month AND weekday
		"0 0 9 * * 0":     {"2026-11-22T09:00:00Z", true}, // Sunday
		"0 0 9 * Jan Mon": {"2027-01-04T09:00:00Z", true},
		"0 0 0 29 2 *":    {"2028-02-29T00:00:00Z", true},
		"00:05:00":        {"2026-11-21T05:45:30.0000005Z", true},
		"00:00:10":        {"2026-11-21T05:40:40.0000005Z", false},
	} {
		s, err := parseSchedule(text)
		if err != nil {
			t.Errorf("parseSchedule(%q): %v", text, err)
			continue
		}
		if got := s.next(from).Format(time.RFC3339Nano); got != test.next {
			t.Errorf("%q: next %s, want %s", text, got, test.next)
		}
		if got := s.monitored(from); got != test.monitored {
			t.Errorf("%q: monitored %v, want %v", text, got, test.monitored)
		}
	}
}

func TestScheduleErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "often", "* * *", "0 0 0 0 * * *", "61 * * * * *", "@daily", "TZ=UTC 0 * * * * *", "0 0 0 30 2 *", "00:00:00", "-00:01:00"} {
		if _, err := parseSchedule(text); err == nil {
			t.Errorf("parseSchedule(%q) succeeded", text)
		}
	}
}

func TestScheduleInItsTimeZone(t *testing.T) {
	t.Parallel()
	zone := testenv.Must(time.LoadLocation("Europe/Berlin"))(t)
	s := testenv.Must(parseSchedule("0 30 2 * * *"))(t)
	got := s.next(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).In(zone)).UTC()
	if want := time.Date(2026, 7, 2, 0, 30, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("next %v, want %v", got, want)
	}
	// 02:30 does not exist on the day when the clocks go forward; the run is not lost.
	got = s.next(time.Date(2026, 3, 28, 12, 0, 0, 0, zone))
	if got.Day() != 29 {
		t.Errorf("next %v, want one on 29 March", got)
	}
}
