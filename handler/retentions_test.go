package handler

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// What is due every hour is done every hour. What is due every night is done once, whichever process the timer fires in, and again in
// the next hour when it has failed.
func TestWhatIsDueAtNight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // it is midnight
		store, broken := tables.NewMemory(), errors.New("broken")
		locks := hostlock.Locks{Tables: store}
		testenv.Check(t, locks.CreateTable(t.Context()))
		did, fails := map[string]int{}, true
		nightly := func(job string, fails *bool) retention {
			return retention{job: job, locks: locks, log: slog.New(slog.DiscardHandler), slice: func(context.Context) (int, bool, error) {
				did[job]++
				if *fails {
					return 0, false, broken
				}
				return 1, false, nil
			}}
		}
		process := func() *retentions {
			return &retentions{tables: store, now: time.Now, nightly: []retention{nightly("bad-retention", &fails), nightly("good-retention", new(bool))},
				hourly: []trigger.TimerHandler{func(context.Context, trigger.TimerDelivery) error { did["hourly"]++; return nil }}}
		}
		for hour, want := range []string{"1 1 1 broken", "2 2 1 broken", "3 3 1", "4 4 2", "4 5 2", "4 6 2"} {
			fails = hour < 2
			err := process().handle(t.Context(), trigger.TimerDelivery{})
			if got := counts(did["bad-retention"], did["hourly"], did["good-retention"], err); got != want {
				t.Errorf("hour %d: %s, want %s", hour, got, want)
			}
			time.Sleep(time.Hour)
		}
		time.Sleep(24 * time.Hour)
		if err := process().handle(t.Context(), trigger.TimerDelivery{}); err != nil || did["bad-retention"] != 5 || did["good-retention"] != 3 {
			t.Errorf("a day later: %v, %v", did, err)
		}
	})
}

func counts(bad, hourly, good int, err error) string {
	var b strings.Builder
	for _, n := range []int{bad, hourly, good} {
		b.WriteByte(byte('0' + n))
		b.WriteByte(' ')
	}
	if err != nil {
		b.WriteString(err.Error())
	}
	return strings.TrimSpace(b.String())
}
