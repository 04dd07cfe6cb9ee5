package worker

import (
	"testing"
	"time"
	_ "time/tzdata" // zones, even if the machine has none

	"pgregory.net/rapid"
)

// slots returns the occurrences of an expression on some days of a zone. It computes each from the previous one, and
// from shortly before now, as a worker does.
func slots(t testing.TB, zone, cron, from string, days int) (all []string) {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	s := Schedule{Cron: cron, Location: loc}.parsed()
	begin, err := time.ParseInLocation(time.DateOnly, from, loc)
	if err != nil {
		t.Fatal(err)
	}
	end := begin.AddDate(0, 0, days)
	since := begin.Add(-time.Second)
	for {
		slot := s.after(since)
		if !slot.Before(end) {
			return all
		}
		if !slot.After(since) {
			t.Fatalf("%s %q: %v after %v", zone, cron, slot, since)
		}
		for _, ago := range []time.Duration{time.Second, time.Minute, 5 * time.Minute} {
			if got := s.after(slot.Add(-ago)); got.After(slot) {
				t.Errorf("%s %q: from %v before, %v comes after %v", zone, cron, ago, got, slot)
			}
		}
		all, since = append(all, slot.Format("02 15:04 -07")), slot
	}
}

// A clock time is one slot on every day, however the clock is set.
func TestClockChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		zone, cron, from string
		days             int
		want             []string
	}{
		"forward":                 {"Europe/Berlin", "0 30 2 * * *", "2000-03-25", 3, []string{"25 02:30 +01", "26 03:30 +02", "27 02:30 +02"}},
		"forward, on the hour":    {"America/New_York", "0 0 2 * * *", "2000-04-01", 3, []string{"01 02:00 -05", "02 03:00 -04", "03 02:00 -04"}},
		"forward, several":        {"Europe/Berlin", "0 */20 2 * * *", "2000-03-26", 1, []string{"26 03:00 +02", "26 03:20 +02", "26 03:40 +02"}},
		"forward, behind it":      {"Europe/Berlin", "0 30 2,3 * * *", "2000-03-26", 1, []string{"26 03:30 +02"}},
		"forward at midnight":     {"America/Sao_Paulo", "0 30 0 * * *", "2018-11-03", 3, []string{"03 00:30 -03", "04 01:30 -02", "05 00:30 -02"}},
		"forward, weekly":         {"Europe/Berlin", "0 30 2 * * SUN", "2000-03-19", 15, []string{"19 02:30 +01", "26 03:30 +02", "02 02:30 +02"}},
		"forward by half an hour": {"Australia/Lord_Howe", "0 15 2 * * *", "2000-08-26", 2, []string{"26 02:15 +1030", "27 02:45 +11"}},
		"back":                    {"America/New_York", "0 30 1 * * *", "2000-10-28", 3, []string{"28 01:30 -04", "29 01:30 -04", "30 01:30 -05"}},
		"back, several":           {"Europe/Berlin", "0 0,30 2 * * *", "2000-10-29", 1, []string{"29 02:00 +02", "29 02:30 +02"}},
		"back at midnight":        {"America/Sao_Paulo", "0 30 23 * * *", "2018-02-17", 2, []string{"17 23:30 -02", "18 23:30 -03"}},
		"back by half an hour":    {"Australia/Lord_Howe", "0 45 1 * * *", "2000-03-26", 1, []string{"26 01:45 +11"}},
		"back, all hours":         {"America/New_York", "0 30 */1 * * *", "2000-10-29", 1, nil},
		"a day that is left out":  {"Pacific/Apia", "0 30 10 * * *", "2011-12-29", 3, []string{"29 10:30 -10", "31 10:30 +14"}},
		"no change":               {"UTC", "0 30 2 * * *", "2000-03-26", 2, []string{"26 02:30 +00", "27 02:30 +00"}},
	} {
		got := slots(t, tt.zone, tt.cron, tt.from, tt.days)
		if tt.want == nil {
			if len(got) != 25 {
				t.Errorf("%s: %d slots: %v", name, len(got), got)
			}
			continue
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
			continue
		}
		for i := range got {
			if short := got[i]; short != tt.want[i] && short+"30" != tt.want[i] {
				t.Errorf("%s: %v, want %v", name, got, tt.want)
			}
		}
	}
}

// In every zone and year, a daily time occurs once on each calendar day.
func TestOnceADay(t *testing.T) {
	t.Parallel()
	zones := []string{"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Gaza", "America/Havana", "Asia/Tehran", "Atlantic/Azores", "UTC"}
	rapid.Check(t, func(r *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(r, "zone")
		loc, err := time.LoadLocation(zone)
		if err != nil {
			r.Fatal(err)
		}
		hour, minute := rapid.IntRange(0, 23).Draw(r, "hour"), rapid.IntRange(0, 59).Draw(r, "minute")
		s := Schedule{Cron: "0 " + time.Date(2000, 1, 1, hour, minute, 0, 0, time.UTC).Format("4 15") + " * * *", Location: loc}.parsed()
		day := time.Date(rapid.IntRange(1990, 2030).Draw(r, "year"), 1, 1, 12, 0, 0, 0, time.UTC)
		at := s.after(time.Date(day.Year(), 1, 1, 0, 0, 0, 0, loc).Add(-time.Second))
		for range 365 {
			// A time skipped at the end of a day occurs on the next day.
			if got := at.In(loc).Format(time.DateOnly); got != day.Format(time.DateOnly) && at.Add(-2*time.Hour).In(loc).Format(time.DateOnly) != day.Format(time.DateOnly) {
				r.Fatalf("%s %02d:%02d: %v, want a slot on %s", zone, hour, minute, at, day.Format(time.DateOnly))
			}
			at, day = s.after(at), day.AddDate(0, 0, 1)
		}
	})
}
