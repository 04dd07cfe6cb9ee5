package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// shown returns the history of a run, entry by entry, in the order of a list from its end.
func (w *world) shown(t *testing.T, correlationID string) (all []string) {
	t.Helper()
	for _, e := range w.History("turntable", correlationID) {
		all = append(all, strings.TrimSpace(fmt.Sprint(e.Operation, " ", e.Status, " ", e.RunStatus)))
	}
	page, err := engine.NewHistory(w.Tables, "").List(t.Context(), engine.HistoryFilter{Engines: []string{"turntable"}, CorrelationID: correlationID})
	if err != nil || len(page.Entries) != len(all) {
		t.Errorf("%d entries in a list of %d, %v", len(page.Entries), len(all), err)
	}
	return all
}

// historyCalls returns the calls of the history table that a plan has seen.
func historyCalls(p *faults.Plan) (calls []string) {
	for _, c := range p.Calls() {
		if c.Target == engine.DefaultHistoryTable {
			calls = append(calls, c.Operation)
		}
	}
	return calls
}

// The history shows the progress of a waiting run, and no result before the run has ended.
func TestOperationsShowWhileTheRunRests(t *testing.T) {
	t.Parallel()
	dry := orchestrator.Permanent(errors.New("dry"))
	tests := map[string]struct {
		rests  rest
		waits  bool // first, so that a signal wakes the run
		dry    error
		during []string
		at     []string // the end
		calls  []string // of the history table, in total
	}{
		"between operations": {rests: between, during: []string{"turn Succeeded"}, at: []string{"turn Succeeded", "lock Succeeded Succeeded"},
			calls: []string{"Query", "Apply", "Query", "Apply"}},
		"after the last": {rests: after, during: []string{"turn Succeeded", "lock Succeeded"}, at: []string{"turn Succeeded", "lock Succeeded Succeeded"},
			calls: []string{"Query", "Apply", "Query", "Apply"}},
		"and then fails": {rests: between, dry: dry, during: []string{"turn Succeeded"}, at: []string{"turn Succeeded", "turn Failed Failed"},
			calls: []string{"Query", "Apply", "Query", "Apply"}},
		"after a signal": {rests: between, waits: true, during: []string{"turn Succeeded"}, at: []string{"turn Succeeded", "lock Succeeded Succeeded"},
			calls: []string{"Query", "Apply", "Query", "Apply"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, plan := newWorld(t), &faults.Plan{}
				w.rests, w.waits, w.dry = tt.rests, tt.waits, tt.dry
				w.Send(testQueue, good)
				p, began := w.Restart(plan), time.Now()
				if tt.waits {
					w.event(t, "c1", time.Minute)
					began = began.Add(time.Hour + 2*time.Minute)
				}
				w.Pass(time.Until(began.Add(30 * time.Minute)))
				if diff := cmp.Diff(tt.during, w.shown(t, "c1")); diff != "" {
					t.Errorf("while it rests (-want +got):\n%s", diff)
				}
				p.Run()
				if diff := cmp.Diff(tt.at, w.shown(t, "c1")); diff != "" {
					t.Errorf("at the end (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.calls, historyCalls(plan)); diff != "" {
					t.Errorf("calls of the history table (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A message that is redelivered while its run waits is no duplicate: the result is unknown.
func TestARunThatRestsHasNotSucceeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rests = after
		p := w.Restart(nil)
		for range 2 {
			w.Send(testQueue, good)
			w.Pass(time.Minute)
		}
		if p.Count(engine.Parked) != 2 || p.Count(engine.Duplicate) != 0 || w.turns.Load() != 1 {
			t.Errorf("%d parked, %d duplicates, %d turns", p.Count(engine.Parked), p.Count(engine.Duplicate), w.turns.Load())
		}
		p.Run()
		w.Send(testQueue, good)
		p.Run()
		if p.Count(engine.Duplicate) == 0 || w.turns.Load() != 1 {
			t.Errorf("%d duplicates, %d turns", p.Count(engine.Duplicate), w.turns.Load())
		}
		w.checkSucceeded(t, "c1")
	})
}

// Waking without progress costs no history calls, however often it happens.
func TestWakingForNothingCostsNoHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, plan := newWorld(t), &faults.Plan{}
		w.rests = between
		w.Send(testQueue, good)
		p := w.Restart(plan)
		w.Pass(time.Minute)
		before := len(historyCalls(plan))
		for i := range 10 { // events that the run does not wait for yet
			body := fmt.Sprintf(`{"signalId":"e%d","workflowInstanceId":"turntable-c1","runtimeProvider":"roundhouse","signalType":"ExternalSignal","payload":{"event":"go","data":1}}`, i)
			w.Send(signalQueue, body)
			w.Pass(time.Minute)
		}
		if after := historyCalls(plan); before != 2 || len(after) != before {
			t.Errorf("%d calls before, then %v", before, after)
		}
		p.Run()
		w.checkSucceeded(t, "c1")
	})
}

// A later delivery writes the progress that could not be written when the run began to wait, without using up an
// attempt.
func TestOperationsShowOnceTheHistoryIsBack(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"brought by a message": false, "brought by a signal": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.rests, w.waits = between, waits
				w.Send(testQueue, good)
				began, back := time.Now(), time.Now().Add(3*time.Minute)
				if waits {
					w.event(t, "c1", time.Minute)
					began, back = began.Add(time.Hour+time.Minute), back.Add(time.Hour)
				}
				away := &faults.Plan{Refuse: func(c faults.Call) bool {
					return c.Target == engine.DefaultHistoryTable && c.Operation == "Apply" && time.Now().Before(back)
				}}
				p := w.Restart(away)
				w.Pass(time.Until(back) - time.Second)
				if got := w.shown(t, "c1"); len(got) != 0 || w.turns.Load() != 1 {
					t.Fatalf("%v, %d turns", got, w.turns.Load())
				}
				w.Pass(time.Until(began.Add(30 * time.Minute)))
				if diff := cmp.Diff([]string{"turn Succeeded"}, w.shown(t, "c1")); diff != "" {
					t.Errorf("while it rests (-want +got):\n%s", diff)
				}
				p.Run()
				w.checkSucceeded(t, "c1")
			})
		})
	}
}

// A slow process that records old progress does not overwrite the end of the run.
func TestTheEndStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.rests = after
		w.Send(testQueue, good)
		once := true
		slow := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Target == engine.DefaultHistoryTable && c.Operation == "Apply" && once {
				once = false
				time.Sleep(time.Minute)
				w.Restart(nil)
				w.Pass(2 * time.Hour)
				w.checkSucceeded(t, "c1")
			}
			return next(context.WithoutCancel(ctx))
		}
		if err := w.RestartOver(slow).Handle(t.Context(), w.Take(testQueue)); err != nil {
			t.Fatal(err)
		}
		if once {
			t.Fatal("nothing was shown")
		}
		w.checkSucceeded(t, "c1")
	})
}
