package cli

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	// It is the next day already in the clock's zone.
	now := time.Date(2026, 3, 1, 0, 30, 15, 500, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"today": "2026-02-28T00:00:00Z", "Yesterday": "2026-02-27T00:00:00Z", "2h": "2026-02-28T21:30:15Z", "-90m": "2026-02-28T22:00:15Z",
		"2026-11-21": "2026-11-21T00:00:00Z", "2026-11-21T10:00:00.5+02:00": "2026-11-21T08:00:00.5Z",
		"tomorrow": "", "2 hours": "", "21.11.2026": "", "2026-11-21 10:00": "", "": "",
	} {
		got, err := parseTime(text, now)
		if want == "" {
			if err == nil {
				t.Errorf("%q: %v", text, got)
			}
		} else if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
}

// An invalid time is refused before the API is called, with the valid forms.
func TestTimeFlags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.record(t, "now", time.Now().UTC().Truncate(time.Microsecond))
	w.want(t, exitOK, []string{"CORRELATION ID"}, "history", "list", "--from", "yesterday")
	w.want(t, exitOK, []string{"There are no such entries."}, "history", "list", "--to", "yesterday")
	w.mu.Lock()
	w.asked = nil
	w.mu.Unlock()
	for _, args := range [][]string{{"history", "list", "--from", "tomorrow"}, {"dlq", "groups", "--to", "2 hours"}, {"orchestration", "purge", "--all", "--ended-before", "then"}} {
		w.want(t, exitUsage, []string{args[len(args)-2] + ` "` + args[len(args)-1] + `": use today, yesterday, a date`}, args...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.asked) != 0 {
		t.Errorf("asked %v", w.asked)
	}
}
