package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// The execution after a failed one does not repeat its completed waits.
func TestAFailedOrchestrationKeepsItsTimers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := NewActivity("step", func(_ context.Context, n int) (int, error) {
			if l.add("step") == 1 {
				return 0, errors.New("boom")
			}
			return n, nil
		})
		child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) { _ = ctx.Sleep(time.Hour); return n + 1, nil })
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			_ = ctx.Sleep(time.Hour)
			n, err := child.Call(ctx, n).Await()
			if err != nil {
				return 0, err
			}
			return step.Call(ctx, n).Await()
		})
		rt := w.runtime(t, nil, []AnyOrchestrator{o, child}, []AnyActivity{step})
		begin := time.Now()
		if out := mustRun(t, rt, startOf("a", 1)); out.Status != Failed {
			t.Fatalf("%+v", out)
		}
		out := mustRun(t, rt, startOf("a", 1))
		if out.Status != Completed || out.Execution != 2 || string(out.Output) != "2" || time.Since(begin).Round(time.Second) != 2*time.Hour {
			t.Errorf("%+v after %v", out, time.Since(begin))
		}
		if all := w.stored(t, "a"); len(all) != 2 {
			t.Errorf("%d executions", len(all))
		}
	})
}

// Code that changes under running orchestrations: those that are past the place keep the old branch.
func TestPatched(t *testing.T) { inBubble(t, testPatched) }

func testPatched(t *testing.T) {
	w, l := newWorld(t), &ledger{}
	before, after, hold := l.step("before"), l.step("after"), make(chan struct{})
	block := NewActivity("block", func(ctx context.Context, n int) (int, error) {
		select {
		case <-hold:
			return n, nil
		default:
			<-ctx.Done()
			return 0, ctx.Err()
		}
	})
	flow := func(patched bool) *Orchestrator[int, int] {
		return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			call := before
			if patched && ctx.Patched("after") {
				call = after
			}
			v, err := call.Call(ctx, n).Await()
			if err != nil {
				return 0, err
			}
			if v, err = block.Call(ctx, v).Await(); err != nil {
				return 0, err
			}
			if patched && ctx.Patched("after") != (call == after) {
				return 0, errors.New("the answer has changed")
			}
			return call.Call(ctx, v).Await()
		})
	}
	start := func(id string, patched bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if out, err := w.process(t, nil, flow(patched), before, after, block).Run(ctx, startOf(id, 1)); err != nil || out.Status != Running {
			t.Fatalf("%+v %v", out, err)
		}
	}
	start("old", false)
	start("new", true)
	close(hold)
	for _, id := range []string{"old", "new"} {
		if out := mustRun(t, w.process(t, nil, flow(true), before, after, block), startOf(id, 1)); out.Status != Completed {
			t.Errorf("%s: %v", id, out.Failure)
		}
	}
	if l.count("before(1)") != 1 || l.count("before(2)") != 1 || l.count("after(1)") != 1 || l.count("after(2)") != 1 {
		t.Errorf("calls: %v", l.all())
	}
	// An orchestration that was started with the patch does not run without it.
	if _, err := w.process(t, nil, flow(false), before, after, block).Run(t.Context(), startOf("new", 1)); err != nil {
		t.Errorf("what has ended is only looked up: %v", err)
	}
}

func TestCustomStatus(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := l.step("step")
	o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
		if err := ctx.SetStatus(map[string]int{"done": 1}); err != nil {
			return "", err
		}
		if _, err := step.Call(ctx, n).Await(); err != nil {
			return "", err
		}
		err := ctx.SetStatus(strings.Repeat("x", maxCustomStatus))
		return err.Error(), nil
	})
	out := mustRun(t, w.process(t, nil, o, step), startOf("a", 1))
	if !strings.Contains(string(out.Output), "at most 16384") {
		t.Errorf("%s", out.Output)
	}
	row, err := w.tables.Get(t.Context(), "orchestrations", tables.Key{Partition: "a", Row: statusRow})
	if err != nil || row.String("CustomStatus") != `{"done":1}` {
		t.Errorf("%v %v", row.Properties, err)
	}
}

func TestRetryTimeoutBoundsTheAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := NewActivity("step", func(context.Context, int) (int, error) { l.add("step"); return 0, errors.New("boom") },
			WithRetry(Retry{MaxAttempts: 100, FirstInterval: time.Minute, Coefficient: 1, Timeout: 10 * time.Minute}))
		begin := time.Now()
		out := mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 1))
		if out.Status != Failed || l.count("step") != 11 || time.Since(begin) > 10*time.Minute {
			t.Errorf("%s after %d attempts in %v", out.Status, l.count("step"), time.Since(begin))
		}
	})
}

// A failed branch runs again when it fails, not when it is awaited.
func TestBranchesRetryOnTheirOwn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		step := NewActivity("step", func(ctx context.Context, n int) (int, error) {
			if Info(ctx).Attempt < 3 {
				return 0, errors.New("boom")
			}
			return n, nil
		}, WithRetry(Retry{MaxAttempts: 3, FirstInterval: time.Minute, Coefficient: 1}))
		begin := time.Now()
		out := mustRun(t, w.process(t, nil, fanOut(step), step), startOf("a", 20))
		if out.Status != Completed || time.Since(begin).Round(time.Second) != 2*time.Minute {
			t.Errorf("%s after %v", out.Status, time.Since(begin))
		}
	})
}

func TestAnyGivesTheFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		after := NewActivity("after", func(ctx context.Context, d time.Duration) (time.Duration, error) {
			select {
			case <-time.After(d):
				return d, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		o := NewOrchestrator("test", func(ctx *Context, _ int) ([]int, error) {
			slow, fast := after.Call(ctx, time.Hour), after.Call(ctx, time.Second)
			order := []int{Any(ctx, slow, fast)}
			order = append(order, Any(ctx, slow, fast)) // it is done, and was first
			order = append(order, Any(ctx, slow, Timer(ctx, time.Minute)))
			order = append(order, Any(ctx, Go(ctx, func(*Context) (int, error) { return 0, errors.New("at once") }), slow))
			return order, nil
		})
		begin := time.Now()
		out := mustRun(t, w.process(t, nil, o, after), startOf("a", 1))
		if string(out.Output) != "[1,1,1,0]" || time.Since(begin).Round(time.Second) != 61*time.Second {
			t.Errorf("%s after %v: %v", out.Output, time.Since(begin), out.Failure)
		}
	})
}

// An execution that waits for too long fails, also when nothing else would wake it.
func TestTimeoutOfAnOrchestration(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		orchestrators, activities := withEvents(l)
		rt := w.signalling(t, nil, orchestrators, activities)
		s := startOf("a", 1)
		s.Timeout = 2 * time.Hour
		for attempt := 1; attempt <= 2; attempt++ {
			if out := mustRun(t, rt, s); !out.Woken || out.Execution != attempt {
				t.Fatalf("%+v", out)
			}
			w.settle(t, rt)
			out := mustGet(t, rt, "a")
			if out.Status != Failed || out.Failure.Code != "TimedOut" || out.Failure.Permanent || !strings.Contains(out.Failure.Message, "did not end by") {
				t.Errorf("%s %+v", out.Status, out.Failure)
			}
			if got := out.EndedAt.Sub(out.StartedAt); got.Round(time.Hour) != 2*time.Hour {
				t.Errorf("attempt %d ended after %v", attempt, got)
			}
		}
		w.stored(t, "a")
	})
}

type vaultError struct {
	Vault string
	Code  int
}

func (e *vaultError) Error() string { return fmt.Sprint("vault ", e.Vault, " says ", e.Code) }

type valueError struct{ N int }

func (e valueError) Error() string { return fmt.Sprint("value ", e.N) }

// Errors of an activity keep their type, also in the process that takes over.
func TestTypedErrorsSurvive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var stop context.CancelFunc
	step := NewActivity("step", func(_ context.Context, n int) (int, error) {
		switch n {
		case 1:
			return 0, fmt.Errorf("wrapped: %w", &vaultError{"v", 403})
		case 2:
			return 0, Permanent(valueError{7})
		}
		return 0, errors.New("plain")
	}, WithError[*vaultError](), WithError[valueError]())
	block := NewActivity("block", func(ctx context.Context, n int) (int, error) {
		stop()
		<-ctx.Done()
		return 0, ctx.Err()
	})
	var seen []string
	o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
		seen = nil
		for n := range 3 {
			_, err := step.Call(ctx, n).Await()
			vault, isVault := errors.AsType[*vaultError](err)
			value, isValue := errors.AsType[valueError](err)
			failed, _ := errors.AsType[*ActivityError](err)
			seen = append(seen, fmt.Sprint(isVault && vault.Vault == "v" && vault.Code == 403, isValue && value.N == 7, IsPermanent(err), failed.Attempt))
		}
		return block.Call(ctx, 1).Await()
	})
	want := []string{"false false false 1", "true false false 1", "false true true 1"}
	for _, live := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		stop = cancel
		if out, err := w.process(t, nil, o, step, block).Run(ctx, startOf("a", 1)); err != nil || out.Ended() {
			t.Fatalf("%+v %v", out, err)
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("live %v (-want +got):\n%s", live, diff)
		}
	}
}

// An orchestration that runs for ever needs no more memory for it, and its executions start over.
func TestContinueAsNewBeginsAnew(t *testing.T) {
	t.Parallel()
	w, plan := newWorld(t), &faults.Plan{}
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		if n < 50 {
			return 0, ContinueAsNew(n + 1)
		}
		return ctx.Execution(), nil
	})
	out := mustRun(t, w.process(t, plan, o), startOf("a", 0))
	if string(out.Output) != "51" || len(out.Earlier) != 0 || len(out.Calls) != 0 {
		t.Errorf("%+v", out)
	}
	if n := applies(plan.Calls()); n != 51 {
		t.Errorf("%d rounds for 51 executions", n)
	}
	bad := NewOrchestrator("test", func(*Context, int) (int, error) { return 0, ContinueAsNew(func() {}) })
	if out := mustRun(t, w.process(t, nil, bad), startOf("b", 0)); out.Status != Failed || !strings.Contains(out.Failure.Message, "continue as new") {
		t.Errorf("%+v", out)
	}
}

func TestAPanicInAFiberIsItsError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
		return Go(ctx, func(*Context) (int, error) { panic("coroutine bug") }).Await()
	})
	out := mustRun(t, w.process(t, nil, o), startOf("a", 0))
	if out.Status != Failed || out.Failure.Code != "panic" || !strings.Contains(out.Failure.Stack, "features_test.go") {
		t.Errorf("%+v", out.Failure)
	}
}
