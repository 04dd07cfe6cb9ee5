package orchestrator

import (
	"errors"
	"testing"
	"time"
)

// An orchestration with an overdue timer whose wake-ups are lost is woken again, with growing pauses, for about a day.
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

// A timer with a lost message is woken once, also when several entries of the index name its run.
func TestSweepWakesOnceForALostTimer(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"swept all the time": 0, "swept after the timer is due": 70 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				orchestrators, activities := sleeper(l, time.Hour)
				rt := w.signalling(t, nil, orchestrators, activities)
				must(rt.Start(t.Context(), startOf("a", 1)))(t) // Start adds an entry, too
				w.deliverDue(t, rt)
				w.loseMessages(t)
				rt = w.signalling(t, nil, orchestrators, activities)
				time.Sleep(pause)
				w.attend(t, rt, 3*time.Hour)
				wants(t, "it is", mustGet(t, rt, "a").Status, Completed)
				wants(t, "wake-ups", rt.Counts().Woken, 1)
			})
		})
	}
}

// A sub-orchestration that waits a day for its next attempt, and its caller, are not woken in between.
func TestSweepLeavesAChildBetweenAttemptsAlone(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]time.Duration{"fails at once": 0, "fails after an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, attempts, sent := newWorld(t), 0, 0
				child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
					if work > 0 {
						_ = ctx.Sleep(work)
					}
					if attempts++; attempts < 2 {
						return 0, errors.New("not yet")
					}
					return n, nil
				})
				parent := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					return child.Call(ctx, n, WithRetry(Retry{MaxAttempts: 2, FirstInterval: 24 * time.Hour})).Await()
				})
				rt := w.counting(t, &sent, parent, child)
				mustRun(t, rt, startOf("a", 1))
				w.attend(t, rt, work+23*time.Hour)
				wants(t, "attempts", attempts, 1)
				wants(t, "wake-ups", rt.Counts().Woken, 0)
				if sent > 3 { // the timer of the child, its end, and the timer of the caller
					t.Errorf("%d messages", sent)
				}
				w.attend(t, rt, 4*time.Hour)
				wants(t, "it is", stands(t, rt, "a"), "Completed 1")
			})
		})
	}
}

// The end of a failed attempt of a sub-orchestration reaches the caller although its message is lost.
func TestSweepReportsALostAttemptOfAChild(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, attempts := newWorld(t), 0
		child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
			_ = ctx.Sleep(time.Hour)
			if attempts++; attempts < 3 {
				return 0, errors.New("not yet")
			}
			return n, nil
		})
		parent := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			return child.Call(ctx, n, WithRetry(Retry{MaxAttempts: 3, FirstInterval: 24 * time.Hour})).Await()
		})
		orchestrators := []AnyOrchestrator{parent, child}
		rt := w.signalling(t, nil, orchestrators, nil)
		mustRun(t, rt, startOf("a", 1))
		for range 60 * 12 {
			must(rt.Sweep(t.Context(), 100))(t)
			for s, m, ok := w.receive(t, budget); ok; s, m, ok = w.receive(t, budget) {
				if s.Type != SubWorkflowCompleted { // these are lost
					must(rt.Deliver(t.Context(), s))(t)
				}
				noError(t, w.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt))
			}
			time.Sleep(sweepEvery)
		}
		wants(t, "it is", stands(t, rt, "a"), "Completed 1")
	})
}
