package orchestrator

import (
	"testing"
	"time"
)

// An orchestration whose timer is overdue, and whom nobody wakes although the sweeper says so, is woken again, ever later, for about
// a day.
func TestSweepWakesAgainAndGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const step = 5 * time.Minute
		w, l := newWorld(t), &ledger{}
		orchestrators, activities := sleeper(l, time.Hour)
		mustRun(t, w.signalling(t, nil, orchestrators, activities), startOf("a", 1))
		time.Sleep(time.Hour)
		var pauses []time.Duration
		for last := time.Now(); time.Since(last) < 48*time.Hour; time.Sleep(step) {
			w.loseMessages(t)
			n := must(w.signalling(t, nil, orchestrators, activities).Sweep(t.Context(), 10))(t)
			if n > 0 {
				pauses = append(pauses, time.Since(last))
				last = time.Now()
			}
		}
		if len(pauses) != 8 {
			t.Fatalf("woken %d times: %v", len(pauses), pauses)
		}
		for i, pause := range pauses {
			least := step << i // the first one is 5 min late; each is found by the next sweep
			if pause < least || pause > least+step {
				t.Errorf("pause %d is %v, want %v to %v", i, pause, least, least+step)
			}
		}
	})
}
