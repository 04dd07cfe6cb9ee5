package realhost

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// ran counts the successes of a function in the log of a host.
func (h *real) ran(t *testing.T, function string) int {
	t.Helper()
	return strings.Count(h.said(t), "Executed 'Functions."+function+"' (Succeeded")
}

// TestTimers runs every timer by hand and one by its schedule, on two hosts of one app. One host keeps the schedule;
// the other takes it over when that one dies.
func TestTimers(t *testing.T) {
	testenv.RealHost(t)
	const often = "outbox-sweep-timer"
	one := app{dist: stage(t), account: storage(t), key: newKey(), id: "timers"}
	reschedule(t, one.dist, "*-timer", newYear)
	reschedule(t, one.dist, often, "* * * * * *")
	two := one
	two.dist = filepath.Join(t.TempDir(), "copy")
	copyDir(t, two.dist, one.dist)
	first := startReal(t, one)
	testenv.Until(t, "the schedule is kept", func() bool { return first.ran(t, often) >= 2 })
	second := startReal(t, two)

	timers, err := filepath.Glob(filepath.Join(one.dist, "*-timer"))
	if err != nil || len(timers) < 4 {
		t.Fatalf("timers: %q, %v", timers, err)
	}
	for _, folder := range timers {
		name := filepath.Base(folder)
		if name == often {
			continue
		}
		a, err := send(strings.TrimPrefix(second.url, "http://"), exchange{line: "POST /admin/functions/" + name,
			headers: []string{"Content-Type: application/json"}, body: "{}"})
		if err != nil || a.status != http.StatusAccepted {
			t.Fatalf("%s by hand: status %d, %v", name, a.status, err)
		}
		testenv.Until(t, name+" has run", func() bool { return second.ran(t, name) == 1 })
	}
	before := first.ran(t, often)
	testenv.Until(t, "the schedule is kept still", func() bool { return first.ran(t, often) > before+1 })
	if n := second.ran(t, often); n != 0 {
		t.Errorf("the second host ran %s %d times besides the first", often, n)
	}
	first.kill(t)
	testenv.Until(t, "the other host keeps the schedule", func() bool { return second.ran(t, often) > 1 })
	if text := first.said(t) + second.said(t); strings.Contains(text, "(Failed, Id") {
		t.Error("an invocation has failed")
	}
}
