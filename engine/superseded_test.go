package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// A run that failed for good needs an operator, and its failures are listed until the retry of its dead letter has
// succeeded.
func TestSupersededByARetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.turn = func(context.Context) error { return orchestrator.Permanent(errors.New("jammed")) }
		w.Send(testQueue, good)
		p := w.Restart(nil)
		p.Run()
		failures := func() int {
			page, err := engine.NewHistory(w.Tables, "").List(t.Context(), engine.HistoryFilter{Engines: []string{"turntable"}, Status: engine.StatusFailed, Open: true})
			if err != nil {
				t.Fatal(err)
			}
			return len(page.Entries)
		}
		dead := w.DeadLetters("turntable")
		if len(dead) != 1 || failures() == 0 {
			t.Fatalf("%d dead letters, %d failures", len(dead), failures())
		}
		w.turn = nil
		if _, err := w.retrier(t, &faults.Plan{}, nil).Retry(t.Context(), "turntable", dead[0].RowKey, "ann"); err != nil {
			t.Fatal(err)
		}
		p.Run()
		if n := failures(); n != 0 {
			t.Errorf("%d failures are listed", n)
		}
		w.checkSuperseded(t, "c1")
	})
}

// Failures that an older version left unmarked are marked when the message is redelivered, at no cost when none are
// left.
func TestSupersededLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Send(testQueue, good)
		w.Restart(nil).Run()
		repeat := func() int {
			plan := &faults.Plan{}
			w.Send(testQueue, good)
			w.Restart(plan).Run()
			return len(plan.Calls())
		}
		costs := repeat()
		entries := w.History("turntable", "c1")
		failed := entries[0]
		failed.Status, failed.RunStatus, failed.Work, failed.CreatedAtUtc = engine.StatusFailed, engine.StatusFailed, "", entries[0].CreatedAtUtc.Add(-1000)
		if err := engine.NewHistory(w.Tables, "").Record(t.Context(), failed); err != nil {
			t.Fatal(err)
		}
		if marking := repeat(); marking != costs+2 {
			t.Errorf("%d calls where there is something to mark, %d where not", marking, costs)
		}
		w.checkSuperseded(t, "c1")
		if again := repeat(); again != costs {
			t.Errorf("%d calls after it was marked, %d before", again, costs)
		}
	})
}
