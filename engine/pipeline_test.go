package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// The budget of one message (design, section 13): its activities, and five. A waiting run also costs its timer, and
// one more to record its progress.
func TestTransactionsOfOneMessage(t *testing.T) {
	t.Parallel()
	const timer, shows = 7, 1 // the seventh is the history read by the process that ends the run
	for name, tt := range map[string]struct {
		rests      rest
		activities int
		besides    int
		scope      engine.Scope
	}{
		"never rests":              {never, 3, 0, ""},
		"rests between operations": {between, 3, timer + shows, ""},
		"rests after operations":   {after, 4, timer + shows, ""},
		"singleton":                {never, 3, 4, engine.PerInstance}, // the reservation, the lock, and two looks for a run before
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, plan := newWorld(t), &faults.Plan{}
				w.rests, w.scope = tt.rests, tt.scope
				w.Send(testQueue, good)
				deliveries := w.Restart(plan).Run()
				byHost := 2 * deliveries // the host gets and deletes each message
				if got := len(plan.Calls()) + byHost; got > tt.activities+5+tt.besides {
					t.Errorf("%d storage transactions for %d activities: %v", got, tt.activities, plan.Calls())
				}
				w.checkSucceeded(t, "c1")
				// A duplicate costs the history read.
				again := &faults.Plan{}
				p := w.Restart(again)
				w.Send(testQueue, good)
				p.Run()
				if got := len(again.Calls()); got != 1 || p.Count(engine.Duplicate) != 1 {
					t.Errorf("a duplicate cost %d transactions, %d were counted", got, p.Count(engine.Duplicate))
				}
				if w.turns.Load() != 1 {
					t.Errorf("%d turns", w.turns.Load())
				}
				w.checkSucceeded(t, "c1")
			})
		})
	}
}

func TestHistoryEntries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.turn = func(context.Context) error { time.Sleep(1500 * time.Millisecond); return nil }
		w.Send(testQueue, good)
		w.Restart(nil).Run()
		entries := w.History("turntable", "c1")
		if len(entries) != 2 {
			t.Fatalf("%d entries", len(entries))
		}
		turn, lock := entries[0], entries[1]
		if turn.Operation != "turn" || turn.DurationMs != 1500 || string(turn.Input) != `{"degrees":90}` || string(turn.Output) != `{"degrees":90}` ||
			turn.InstanceID != "i1" || turn.RunStatus != "" || turn.Status != engine.StatusSucceeded {
			t.Errorf("%+v", turn)
		}
		if lock.Operation != "lock" || string(lock.Output) != `"i1"` || lock.RunStatus != engine.StatusSucceeded {
			t.Errorf("%+v", lock)
		}
	})
}

func TestAnActivityThatAlwaysFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		w.turn = func(context.Context) error { return fmt.Errorf("jammed, turn %d", w.turns.Load()) }
		w.Send(testQueue, good)
		p := w.Restart(nil)
		if n := p.Run(); n != 5 {
			t.Errorf("%d deliveries", n)
		}
		checkDead("jammed")(t, w)
		dead := w.DeadLetters("turntable")
		if len(dead) != 1 || w.turns.Load() != 4 {
			t.Fatalf("%d dead letters after %d turns", len(dead), w.turns.Load())
		}
		l := dead[0]
		if l.DequeueCount != 5 || l.DetectedReason != engine.ReasonAttemptsExhausted || string(l.OriginalMessage) != good || l.CorrelationID != "c1" {
			t.Errorf("%+v", l)
		}
		if !strings.Contains(l.ErrorMessage, "jammed, turn 4") {
			t.Errorf("error %q", l.ErrorMessage)
		}
		first, last := l.FirstFailureAtUtc.Sub(began), l.LastFailureAtUtc.Sub(began)
		if first.Round(time.Second) != 0 || last.Round(time.Second) != 3*enginetest.Visibility {
			t.Errorf("failed first after %v and last after %v", first, last)
		}
		entries := w.History("turntable", "c1")
		for i, e := range entries {
			if e.Status != engine.StatusFailed || e.RunStatus != engine.StatusFailed || e.Error != fmt.Sprintf("jammed, turn %d", i+1) {
				t.Errorf("entry %d: %+v", i, e)
			}
		}
		if len(entries) != 4 || p.Count(engine.Failed) != 4 || p.Count(engine.DeadLettered) != 1 {
			t.Errorf("%d entries, counts %d and %d", len(entries), p.Count(engine.Failed), p.Count(engine.DeadLettered))
		}
	})
}

// The work is done, but history writes fail until the attempts are used up: the message is no dead letter then.
func TestAHistoryThatComesBackLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Send(testQueue, good)
		away := &faults.Plan{Refuse: func(c faults.Call) bool { return c.Target == engine.DefaultHistoryTable && c.Operation == "Apply" }}
		n := 0
		for n < engine.DefaultMaxAttempts-1 {
			w.Restart(away)
			n += w.Deliver()
			time.Sleep(enginetest.Visibility)
		}
		n += w.Restart(nil).Run()
		if n != engine.DefaultMaxAttempts || w.turns.Load() != 1 {
			t.Errorf("%d deliveries, %d turns", n, w.turns.Load())
		}
		w.checkSucceeded(t, "c1")
	})
}

func TestAPermanentErrorIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.turn = func(context.Context) error { return orchestrator.Permanent(errors.New("no such table")) }
		w.Send(testQueue, good)
		if n := w.Restart(nil).Run(); n != 1 {
			t.Errorf("%d deliveries", n)
		}
		dead := w.DeadLetters("turntable")
		if len(dead) != 1 || dead[0].DetectedReason != engine.ReasonPermanent || !strings.Contains(dead[0].ErrorMessage, "no such table") || dead[0].DequeueCount != 1 {
			t.Errorf("%+v", dead)
		}
		if e := w.History("turntable", "c1"); len(e) != 1 || e[0].Status != engine.StatusFailed {
			t.Errorf("%+v", e)
		}
	})
}

func TestARunThatRecoversShowsBothAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.turn = func(context.Context) error {
			if w.turns.Load() == 1 {
				return errors.New("jammed")
			}
			return nil
		}
		w.Send(testQueue, good)
		if n := w.Restart(nil).Run(); n != 2 {
			t.Errorf("%d deliveries", n)
		}
		w.checkSucceeded(t, "c1")
		if e := w.History("turntable", "c1"); len(e) != 3 || e[0].Error != "jammed" {
			t.Errorf("%+v", e)
		}
	})
}

// A timeout does not use up an attempt if there was progress, and does otherwise.
func TestParking(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		slowTurns  int32
		deliveries int
		dead       bool
	}{
		"once":       {slowTurns: 1, deliveries: 2},
		"never ends": {slowTurns: 1000, deliveries: 6, dead: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.turn = func(ctx context.Context) error {
					if w.turns.Load() <= tt.slowTurns {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}
				w.Send(testQueue, good)
				p := w.Restart(nil)
				n := 0
				for {
					left, err := w.Queues.Length(t.Context(), testQueue)
					if err != nil || left == 0 {
						break
					}
					n += w.deliverWithin(p, 10*time.Second)
				}
				if n != tt.deliveries {
					t.Errorf("%d deliveries", n)
				}
				if !tt.dead {
					w.checkSucceeded(t, "c1")
					return
				}
				dead := w.DeadLetters("turntable")
				if len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, "ran out") || string(dead[0].OriginalMessage) != good || dead[0].DequeueCount != 5 {
					t.Errorf("%+v", dead)
				}
			})
		})
	}
}

func TestNewPipelineNamesEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	d := newWorld(t).definition()
	other := d
	other.Name = "roundabout"
	_, err := engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d, d, other, {}}, HostMaxDequeueCount: 5})
	for _, want := range []string{"runtime, history, dead letters and queues", "belongs to another engine", "set maxDequeueCount in host.json above 5",
		`its orchestrator is named "turntable"`, "the engine name is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// A message whose run succeeded is no dead letter, however often it could not be acknowledged, and even when only the
// history still has the run.
func TestASuccessIsNoDeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.Restart(nil)
		w.Send(testQueue, good)
		d := w.Take(testQueue)
		if err := p.Handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if err := w.Runtime().Purge(t.Context(), "turntable-c1"); err != nil {
			t.Fatal(err)
		}
		d.DequeueCount = engine.DefaultMaxAttempts
		if err := p.Handle(t.Context(), d); err != nil || p.Count(engine.Duplicate) != 1 || w.turns.Load() != 1 {
			t.Errorf("%v; %d duplicates, %d turns", err, p.Count(engine.Duplicate), w.turns.Load())
		}
		w.checkSucceeded(t, "c1")
	})
}
