package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// secondChanceScenarios are those that run again, besides their parents, or after they were canceled.
func secondChanceScenarios() map[string]scenario {
	never := map[string]int{"step(99)": 0}
	return map[string]scenario{
		"tried again by its message": {make: withAttempts, output: `"1 2, 3"`, retries: true, outside: raiseBetweenAttempts,
			most: map[string]int{"picky": 4}},
		"a signal lets it fail, and it is tried again": {make: withLateFailure, output: `"1 2 true"`, retries: true, outside: raiseForAttempts,
			most: map[string]int{"picky": 4}},
		"begins anew": {make: withMistake, output: `"3 2"`, retries: true, most: map[string]int{"step(1)": 3, "step(2)": 3}},
		"undone and tried again": {make: withUndone, output: `"downloaded in 1, made in 2"`, retries: true,
			most: map[string]int{"make": 3, "picky": 4}},
		"a child that fails by a signal": {make: withChildThatFails, output: `"the child failed: declined"`, outside: raiseForChild, children: Failed},
		"children that lose a race":      {make: withRace, output: `"2"`, children: Canceled, most: never},
		"a grandchild behind a month":    {make: withMonth, output: `"12"`, children: Completed},
		"a child with a retry":           {make: withChildRetry, output: `"13"`, outside: raiseForChild, children: Completed, most: map[string]int{"picky": 3}},
		"canceled, with a clean-up": {make: withCleanUp, status: Canceled, output: "the orchestration was canceled: no need", children: Canceled, most: never,
			operate: []request{{time.Hour, cancelFor("no need")}, {2 * time.Hour, cancelFor("no need at all")}}},
		"a clean-up that fails": {make: withFailedCleanUp, status: Failed, output: "activity stuck (attempt 1): the volume is locked", retries: true,
			operate: []request{{time.Hour, cancelFor("no need")}}},
		"events to another":                  {make: withEventsToAnother, output: `"sent"`, others: map[string]string{":other": `[1,2,3]`}},
		"drained before it continues as new": {make: withDrain, output: `"1 2 3"`, outside: raiseEvents},
	}
}

func cancelFor(reason string) func(context.Context, *Runtime) error {
	return func(ctx context.Context, rt *Runtime) error { return rt.Cancel(ctx, "a", reason) }
}

// picky fails in the first execution of an orchestration.
func (l *ledger) picky() *Activity[int, int] {
	return NewActivity("picky", func(ctx context.Context, n int) (int, error) {
		l.add("picky")
		if Info(ctx).Execution == 1 {
			return 0, errors.New("not yet")
		}
		return n, nil
	})
}

// withAttempts fails at once, and in the second attempt reads an event that arrived between the two.
func withAttempts(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step, picky := l.step("step"), l.picky()
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		v, err := step.Call(ctx, n).Await()
		if err != nil {
			return "", err
		}
		if _, err := picky.Call(ctx, v).Await(); err != nil {
			return "", err
		}
		said := ""
		for range 2 {
			e, err := Event[int](ctx, "number").Await()
			if err != nil {
				return "", err
			}
			said += fmt.Sprint(e, " ")
		}
		v, err = step.Call(ctx, v).Await()
		return fmt.Sprint(said[:len(said)-1], ", ", v), err
	})
	return []AnyOrchestrator{o}, []AnyActivity{step, picky}
}

func raiseBetweenAttempts(t *testing.T, w *world) {
	t.Helper()
	raise(t, w, "a", 1, 2*time.Minute)
	raise(t, w, "a", 1, 4*time.Minute)
	raise(t, w, "a", 2, time.Hour)
}

// withLateFailure fails after it has read an event, which it reads again, like the one that arrived between the
// attempts.
func withLateFailure(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step, picky := l.step("step"), l.picky()
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		begin := ctx.Now()
		if err := ctx.Sleep(time.Hour); err != nil {
			return "", err
		}
		first, err := Event[int](ctx, "number").Await()
		if err != nil {
			return "", err
		}
		if _, err := step.Call(ctx, first).Await(); err != nil {
			return "", err
		}
		if _, err := picky.Call(ctx, first).Await(); err != nil {
			return "", err
		}
		second, err := Event[int](ctx, "number").Await()
		if err != nil {
			return "", err
		}
		_, err = step.Call(ctx, second).Await()
		return fmt.Sprint(first, " ", second, " ", ctx.Now().After(begin)), err
	})
	return []AnyOrchestrator{o}, []AnyActivity{step, picky}
}

func raiseForAttempts(t *testing.T, w *world) {
	t.Helper()
	raise(t, w, "a", 1, 2*time.Hour)
	raise(t, w, "a", 2, 2*time.Hour+45*time.Minute)
	raise(t, w, "a", 1, 6*time.Hour)
}

// withMistake fails by itself the first time, so that the second attempt keeps nothing.
func withMistake(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		v, err := step.Call(ctx, n).Await()
		if err != nil {
			return "", err
		}
		if v, err = step.Call(ctx, v).Await(); err != nil {
			return "", err
		}
		if ctx.Execution() == 1 {
			return "", errors.New("a mistake")
		}
		return fmt.Sprint(v, " ", ctx.Execution()), nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}

// withUndone undoes its call when that does not verify, and makes it again, but does not download it again. Its output
// is the execution of each.
func withUndone(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	doing := func(name string) *Activity[int, int] {
		return NewActivity(name, func(ctx context.Context, _ int) (int, error) {
			l.add(name)
			return Info(ctx).Execution, nil
		})
	}
	download, makes, takes, picky := doing("download"), doing("make"), doing("take"), l.picky()
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		downloaded, err := download.Call(ctx, n).Await()
		if err != nil {
			return "", err
		}
		made, err := makes.Call(ctx, n, WithUndo(takes, n)).Await()
		if err != nil {
			return "", err
		}
		if _, err := picky.Call(ctx, n).Await(); err != nil {
			return "", errors.Join(err, Undo(ctx))
		}
		return fmt.Sprintf("downloaded in %d, made in %d", downloaded, made), nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{download, makes, takes, picky}
}

// withChildThatFails waits for a child that fails after an event, without a retry.
func withChildThatFails(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	charge := NewActivity("charge", func(context.Context, int) (int, error) {
		l.add("charge")
		return 0, errors.New("declined")
	})
	child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) {
		n, err := Event[int](ctx, "number").Await()
		if err != nil {
			return 0, err
		}
		return charge.Call(ctx, n).Await()
	})
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		_, err := child.Call(ctx, 7).Await()
		failed, ok := errors.AsType[*OrchestrationError](err)
		if !ok || failed.Orchestrator != "child" {
			return "", fmt.Errorf("the child gave %w", err)
		}
		said := failed.Failure.Message
		return "the child failed: " + said[len(said)-len("declined"):], nil
	})
	return []AnyOrchestrator{o, child}, []AnyActivity{charge}
}

// withRace ends before its children: one waits for an event that never comes, one for a time, and both clean up.
func withRace(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	cleanUp := func(ctx *Context, n int, err error) (int, error) {
		if !errors.Is(err, ErrCanceled) {
			return 0, fmt.Errorf("it was to be canceled: %w", err)
		}
		if _, failed := step.Call(WithoutCancel(ctx), n).Await(); failed != nil {
			return 0, failed
		}
		return 0, err
	}
	waits := NewOrchestrator("waits", func(ctx *Context, n int) (int, error) {
		_, err := Event[int](ctx, "never").Await()
		return cleanUp(ctx, n, err)
	})
	sleeps := NewOrchestrator("sleeps", func(ctx *Context, n int) (int, error) {
		err := ctx.Sleep(48 * time.Hour)
		if err == nil {
			return step.Call(ctx, 99).Await()
		}
		return cleanUp(ctx, n, err)
	})
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		first := Any(ctx, waits.Call(ctx, 10), sleeps.Call(ctx, 20), Timer(ctx, 3*time.Hour))
		return fmt.Sprint(first), nil
	})
	return []AnyOrchestrator{o, waits, sleeps}, []AnyActivity{step}
}

// withMonth waits for a child whose child sleeps for a month.
func withMonth(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	grandchild := NewOrchestrator("grandchild", func(ctx *Context, n int) (int, error) {
		if err := ctx.Sleep(30 * 24 * time.Hour); err != nil {
			return 0, err
		}
		return step.Call(ctx, n).Await()
	})
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		v, err := grandchild.Call(ctx, n).Await()
		if err != nil {
			return 0, err
		}
		return step.Call(ctx, v).Await()
	})
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		v, err := child.Call(ctx, 10).Await()
		return fmt.Sprint(v), err
	})
	return []AnyOrchestrator{o, child, grandchild}, []AnyActivity{step}
}

// withChildRetry waits for a child that fails after an event, and has a second attempt an hour later, which finds the
// event and the results of the first.
func withChildRetry(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step, picky := l.step("step"), l.picky()
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		v, err := step.Call(ctx, n).Await()
		if err != nil {
			return 0, err
		}
		e, err := Event[int](ctx, "number").Await()
		if err != nil {
			return 0, err
		}
		if e, err = picky.Call(ctx, e).Await(); err != nil {
			return 0, err
		}
		if err := ctx.Sleep(2 * time.Hour); err != nil {
			return 0, err
		}
		return v + e, nil
	})
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		v, err := child.Call(ctx, 7, WithRetry(Retry{MaxAttempts: 2, FirstInterval: time.Hour})).Await()
		if err != nil {
			return "", err
		}
		last, err := step.Call(ctx, v+2).Await()
		return fmt.Sprint(last), err
	})
	return []AnyOrchestrator{o, child}, []AnyActivity{step, picky}
}

// withCleanUp waits for a child until both are canceled, and takes hours to clean up after it.
func withCleanUp(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		_, err := Event[int](ctx, "never").Await()
		if _, failed := step.Call(WithoutCancel(ctx), n).Await(); failed != nil {
			return 0, failed
		}
		return 0, err
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		_, err := child.Call(ctx, 7).Await()
		if !errors.Is(err, ErrCanceled) {
			return 0, fmt.Errorf("the child gave %w", err)
		}
		if _, late := step.Call(ctx, 99).Await(); !errors.Is(late, ErrCanceled) {
			return 0, fmt.Errorf("a call that is not shielded gave %w", late)
		}
		calm := WithoutCancel(ctx)
		if _, failed := step.Call(calm, n).Await(); failed != nil {
			return 0, failed
		}
		if failed := calm.Sleep(3 * time.Hour); failed != nil {
			return 0, failed
		}
		if _, failed := step.Call(calm, n+1).Await(); failed != nil {
			return 0, failed
		}
		return 0, err
	})
	return []AnyOrchestrator{o, child}, []AnyActivity{step}
}

// withFailedCleanUp cannot clean up: that is for an operator, and no other attempt is made.
func withFailedCleanUp(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	stuck := NewActivity("stuck", func(context.Context, int) (int, error) {
		l.add("stuck")
		return 0, errors.New("the volume is locked")
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		_, err := Event[int](ctx, "never").Await()
		if !errors.Is(err, ErrCanceled) {
			return 0, err
		}
		return stuck.Call(WithoutCancel(ctx), n).Await()
	})
	return []AnyOrchestrator{o}, []AnyActivity{stuck}
}

// withEventsToAnother starts an orchestration and sends it events: two in a round, and one after them. The output of
// the other one is their order.
func withEventsToAnother(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	return sendingEvents(l, func([]int) {})
}

func sendingEvents(l *ledger, arrange func([]int)) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	other := NewOrchestrator("other", func(ctx *Context, _ int) ([]int, error) {
		got := make([]int, 3)
		for i := range got {
			v, err := Event[int](ctx, "number").Await()
			if err != nil {
				return nil, err
			}
			got[i] = v
		}
		arrange(got)
		return got, nil
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		id, err := other.Start(ctx, ctx.ID()+":other", n)
		if err != nil {
			return "", err
		}
		for i := range 3 {
			if err := RaiseEvent(ctx, id, "number", i+1); err != nil {
				return "", err
			}
			if i == 1 {
				if _, err := step.Call(ctx, n).Await(); err != nil {
					return "", err
				}
			}
		}
		_, err = step.Call(ctx, n+1).Await()
		return "sent", err
	})
	return []AnyOrchestrator{o, other}, []AnyActivity{step}
}

// withDrain takes an event, and then all that have arrived meanwhile, before it continues as new.
func withDrain(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, raw any) (string, error) {
		said, _ := raw.(string)
		v, err := Event[int](ctx, "number").Await()
		if err != nil {
			return "", err
		}
		if err := ctx.Sleep(90 * time.Minute); err != nil {
			return "", err
		}
		for ok := true; ok; {
			if _, err := step.Call(ctx, v).Await(); err != nil {
				return "", err
			}
			said += fmt.Sprint(" ", v)
			if v, ok, err = TryReceive[int](ctx, "number"); err != nil {
				return "", err
			}
		}
		if len(said) < len(" 1 2 3") {
			return "", ContinueAsNew(said)
		}
		return said[1:], nil
	})
	return []AnyOrchestrator{o}, []AnyActivity{step}
}
