package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"
)

// request is a request of an operator to a runtime some time after the start, repeated until it succeeds.
type request struct {
	at   time.Duration
	send func(ctx context.Context, rt *Runtime) error
}

// operated are the scenarios with operators, and those that end badly.
func operated() map[string]scenario {
	return map[string]scenario{
		"fails": {make: withFailure, status: Failed, most: map[string]int{"trouble": 4},
			output: "the child failed: child trouble"},
		"suspend and resume": {make: withSuspension, output: `"1 2 true"`,
			outside: func(t *testing.T, w *world) { t.Helper(); raise(t, w, "a", 2, 3*time.Hour) },
			operate: []request{
				{time.Hour, func(ctx context.Context, rt *Runtime) error { return rt.Suspend(ctx, "a", "maintenance") }},
				{4 * time.Hour, isSuspended},
				{5 * time.Hour, func(ctx context.Context, rt *Runtime) error { return rt.Resume(ctx, "a", "") }}}},
		"terminate mid-way": {make: withFamily, status: Terminated, output: "the orchestration was terminated: no longer needed",
			most: map[string]int{"step(99)": 0},
			operate: []request{
				{time.Hour, func(ctx context.Context, rt *Runtime) error { return rt.Terminate(ctx, "a", "no longer needed") }}}},
		"failed run, then run again": {make: withSecondChance, output: `"[11 4] 6"`, most: map[string]int{"picky": 4},
			operate: []request{{3 * time.Hour, runAgain}}},
	}
}

// everyScenario returns all scenarios.
func everyScenario() map[string]scenario {
	all := scenarios()
	maps.Copy(all, operated())
	maps.Copy(all, withPeople())
	maps.Copy(all, secondChanceScenarios())
	return all
}

// withFailure fails for good, after a timer, because its child does.
func withFailure(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	trouble := NewActivity("trouble", func(context.Context, int) (int, error) {
		l.add("trouble")
		return 0, errors.New("child trouble")
	})
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		_ = ctx.Sleep(time.Hour)
		return trouble.Call(ctx, n).Await()
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		v, err := step.Call(ctx, n).Await()
		if err != nil {
			return 0, err
		}
		_, err = child.Call(ctx, v).Await()
		var cause *Failure
		if errors.As(err, &cause) {
			return 0, fmt.Errorf("the child failed: %s", cause.Message[len(cause.Message)-len("child trouble"):])
		}
		return 0, err
	})
	return []AnyOrchestrator{o, child}, []AnyActivity{step, trouble}
}

// withSuspension waits for the first of an event and a timer, and both come while it is suspended.
func withSuspension(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		begin := ctx.Now()
		if _, err := step.Call(ctx, n).Await(); err != nil {
			return "", err
		}
		e := Event[int](ctx, "number")
		first := Any(ctx, e, Timer(ctx, 2*time.Hour))
		v, err := e.Await()
		if err != nil {
			return "", err
		}
		late := ctx.Now().Sub(begin) > 4*time.Hour
		_, err = step.Call(ctx, v).Await()
		return fmt.Sprint(first, " ", v, " ", late), err
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}

// withFamily waits for a child that waits for a child that waits for an event that never comes.
func withFamily(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	grandchild := NewOrchestrator("grandchild", func(ctx *Context, _ int) (int, error) {
		if _, err := step.Call(ctx, 3).Await(); err != nil {
			return 0, err
		}
		if _, err := Event[int](ctx, "number").Await(); err != nil {
			return 0, err
		}
		return step.Call(ctx, 99).Await()
	})
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		v, err := grandchild.Call(ctx, n).Await()
		if err != nil {
			return 0, err
		}
		return step.Call(ctx, v).Await()
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		if _, err := step.Call(ctx, n).Await(); err != nil {
			return 0, err
		}
		_, err := All(child.Call(ctx, 7), step.Call(ctx, 2))
		if err != nil {
			return 0, err
		}
		return step.Call(ctx, 99).Await()
	})
	return []AnyOrchestrator{o, child, grandchild}, []AnyActivity{step}
}

// withSecondChance fails in its first execution, and so does its child.
func withSecondChance(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	picky := NewActivity("picky", func(ctx context.Context, n int) (int, error) {
		l.add("picky")
		if Info(ctx).Execution == 1 {
			return 0, errors.New("not yet")
		}
		return n + 1, nil
	})
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		v, err := picky.Call(ctx, n).Await()
		if err != nil {
			return 0, err
		}
		_ = ctx.Sleep(10 * time.Minute)
		return v, nil
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		v, err := step.Call(ctx, n).Await()
		if err != nil {
			return "", err
		}
		_ = ctx.Sleep(time.Hour)
		both, err := All(step.Call(ctx, 10), child.Call(ctx, v+1))
		if err != nil {
			return "", err
		}
		_ = ctx.Sleep(time.Hour)
		last, err := step.Call(ctx, both[1]+1).Await()
		return fmt.Sprint(both, " ", last), err
	})
	return []AnyOrchestrator{o, child}, []AnyActivity{step, picky}
}

func isSuspended(ctx context.Context, rt *Runtime) error {
	out, err := rt.Get(ctx, "a")
	if err == nil && out.Status == Running {
		return fmt.Errorf("orchestration %s is %s", out.ID, out.Status)
	}
	return err
}

// runAgain repeats the message that started the orchestration, as an engine does after a failure.
func runAgain(ctx context.Context, rt *Runtime) error {
	out, err := rt.Run(ctx, startOf("a", 1))
	if err == nil && !out.Ended() && !out.Woken {
		return fmt.Errorf("orchestration %s: the time ran out", out.ID)
	}
	return err
}
