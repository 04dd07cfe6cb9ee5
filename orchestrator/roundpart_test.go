package orchestrator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// Events that were learned after the result that ended an execution do not hide its end, in any number of rounds.
func TestTheEndStandsInTheLastRound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		w.roundBudget = narrow()
		one, two := l.step("one"), l.step("two")
		fails := NewActivity("fails", func(context.Context, int) (int, error) { return 0, errors.New("no") })
		activities := []AnyActivity{one, two, fails}
		first := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			if _, err := All(one.Call(ctx, n), two.Call(ctx, n)); err != nil {
				return 0, err
			}
			return fails.Call(ctx, n).Await()
		})}, activities)
		if out := mustRun(t, first, startOf("a", 1)); out.Status != Failed {
			t.Fatal(out.Status)
		}
		// The next attempt has both results immediately, and ends with the first.
		next := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			return firstOf2(ctx, one.Call(ctx, n), two.Call(ctx, n))
		})}, activities)
		for range 2 {
			if out := mustRun(t, next, startOf("a", 1)); out.Status != Completed || out.Execution != 2 || string(out.Output) != "2" {
				t.Errorf("execution %d: %s %s %v", out.Execution, out.Status, out.Output, out.Failure)
			}
		}
		latest := w.stored(t, "a")[1]
		if end := latest.end(); end == nil || end.Kind != executionCompleted {
			t.Errorf("it ends with %v", end)
		}
		if l.count("one(1)") != 1 || l.count("two(1)") != 1 {
			t.Errorf("calls %v", l.all())
		}
	})
}

// firstOf2 returns the first result.
func firstOf2(ctx *Context, a, b *Future[int]) (int, error) {
	if Any(ctx, a, b) == 0 {
		return a.Await()
	}
	return b.Await()
}

// If a process cannot continue after its commit, and its message is not redelivered, the sweeper continues the run.
func TestWhatFailsAfterACommitIsGoneOnWith(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			n, err := step.Call(ctx, n).Await()
			if err != nil {
				return 0, err
			}
			return step.Call(ctx, n).Await()
		})
		rounds := 0
		fails := w.intercepted(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Operation == "Apply" && c.Target == "orchestrations" {
				if rounds++; rounds > 2 {
					return tables.ErrThrottled
				}
			}
			return next(ctx)
		}, Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{step}})
		if _, err := fails.Run(t.Context(), startOf("a", 1)); !errors.Is(err, tables.ErrThrottled) {
			t.Fatal(err)
		}
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step})
		time.Sleep(10 * time.Minute)
		if n := w.mustSweep(t, rt); n != 1 {
			t.Errorf("%d woken", n)
		}
		w.deliverDue(t, rt)
		if out := mustGet(t, rt, "a"); out.Status != Completed || string(out.Output) != "3" {
			t.Errorf("%s %s", out.Status, out.Output)
		}
	})
}
