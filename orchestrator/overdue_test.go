package orchestrator

import (
	"testing"
	"time"
)

// A run with a lost message is counted as overdue until a sweep.
func TestOverdue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		orchestrators, activities := sleeper(l, time.Hour)
		rt := w.signalling(t, nil, orchestrators, activities)
		count := func(want int, atLeast time.Duration) {
			t.Helper()
			n, longest, err := rt.Overdue(t.Context(), 100)
			if err != nil || n != want || longest < atLeast || n == 0 && longest != 0 {
				t.Errorf("%d overdue, for %v, %v; want %d", n, longest, err, want)
			}
		}
		mustRun(t, rt, startOf("a", 1))
		mustRun(t, rt, startOf("b", 1))
		w.loseMessages(t)
		rt = w.signalling(t, nil, orchestrators, activities)
		count(0, 0)
		time.Sleep(time.Hour + 6*time.Minute)
		count(2, 6*time.Minute-time.Second)
		if n, _, err := rt.Overdue(t.Context(), 1); n != 1 || err != nil {
			t.Errorf("up to one: %d, %v", n, err)
		}
		w.mustSweep(t, rt)
		count(0, 0)
	})
}
