package poller_test

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
)

// Counts are added; states are those of the later runner, if known.
func TestCountersPlus(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	first := poller.Counters{Rows: 1, Batches: 2, Quarantined: 3, Ticks: 4, Idle: 5, Skipped: 6, Failures: 7, Failed: 8, LeasesLost: 9, Unconfirmed: 10,
		BatchSize: 100, Lag: time.Minute, LastSuccess: early, HeldBack: "a transaction is open"}
	second := poller.Counters{Rows: 10, Batches: 20, Quarantined: 30, Ticks: 40, Idle: 50, Skipped: 60, Failures: 70, Failed: 80, LeasesLost: 90, Unconfirmed: 100,
		BatchSize: 200, Lag: 0, LastSuccess: late}
	sum := poller.Counters{Rows: 11, Batches: 22, Quarantined: 33, Ticks: 44, Idle: 55, Skipped: 66, Failures: 77, Failed: 88, LeasesLost: 99, Unconfirmed: 110,
		BatchSize: 200, Lag: 0, LastSuccess: late}
	testenv.Equal(t, "", sum, first.Plus(second))
	fresh := first
	fresh.HeldBack = ""
	testenv.Equal(t, "with a runner that has done nothing", fresh, first.Plus(poller.Counters{Lag: -1}))
}
