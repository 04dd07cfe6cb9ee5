package orchestrator

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
)

func TestReplayThatDecidesDifferentlyStalls(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step, other := l.step("step"), l.step("other")
	block := NewActivity("block", func(ctx context.Context, n int) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	flow := func(first *Activity[int, int], input int) *Orchestrator[int, int] {
		return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			v, err := first.Call(ctx, input).Await()
			if err != nil {
				return 0, err
			}
			return block.Call(ctx, v).Await()
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	rt := w.process(t, nil, flow(step, 1), step, block, other)
	go func() {
		for l.count("step(1)") == 0 {
			runtime.Gosched()
		}
		cancel()
	}()
	if out, err := rt.Run(ctx, startOf("a", 1)); err != nil || out.Status != Running {
		t.Fatalf("%+v %v", out, err)
	}
	before := w.stored(t, "a")
	tests := map[string]AnyOrchestrator{
		"another activity": flow(other, 1),
		"another input":    flow(step, 2),
		"no call at all":   NewOrchestrator("test", func(*Context, int) (int, error) { return 0, nil }),
		"a panic":          NewOrchestrator("test", func(*Context, int) (int, error) { panic("new bug") }),
	}
	for name, o := range tests {
		plan := &faults.Plan{}
		_, err := w.process(t, plan, o, step, block, other).Run(t.Context(), Start{ID: "a", Orchestrator: "test", Input: []byte("1"), CorrelationID: "corr", Resume: true})
		stalled, ok := errors.AsType[*DeterminismError](err)
		if !ok || !errors.Is(err, ErrStalled) || stalled.Round != 1 || !strings.Contains(stalled.Recorded, "activity step with input 1") || stalled.Decided == stalled.Recorded {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(w.stored(t, "a")[0].rounds) - len(before[0].rounds); n != 1 {
			t.Errorf("%s: %d rounds say that it is stalled", name, n)
		}
	}
	w.onlyStalled(t, "a", before)
	block = NewActivity("block", func(_ context.Context, n int) (int, error) { return n, nil })
	if out := mustRun(t, w.process(t, nil, flow(step, 1), step, block, other), startOf("a", 1)); out.Status != Completed || l.count("step(1)") != 1 {
		t.Errorf("with its old code: %s %v, calls %v", out.Status, out.Failure, l.all())
	}
}

func TestUserCodeThatMisbehaves(t *testing.T) {
	t.Parallel()
	step := NewActivity("step", func(_ context.Context, n int) (int, error) {
		switch n {
		case 1:
			panic("activity bug")
		case 2:
			runtime.Goexit()
		}
		return n, nil
	})
	unregistered := NewActivity("unregistered", func(_ context.Context, n int) (int, error) { return n, nil })
	unencodable := NewActivity("step", func(context.Context, func()) (int, error) { return 0, nil })
	tests := map[string]struct {
		fn   func(*Context, int) (int, error)
		want string
	}{
		"activity panics":  {func(ctx *Context, _ int) (int, error) { return step.Call(ctx, 1).Await() }, "panic: activity bug"},
		"activity Goexits": {func(ctx *Context, _ int) (int, error) { return step.Call(ctx, 2).Await() }, "called runtime.Goexit"},
		"panics":           {func(ctx *Context, _ int) (int, error) { panic("orchestrator bug") }, "panic: orchestrator bug"},
		"panics later": {func(ctx *Context, _ int) (int, error) {
			if _, err := step.Call(ctx, 3).Await(); err != nil {
				return 0, err
			}
			panic("late bug")
		}, "panic: late bug"},
		"input that is no JSON": {func(ctx *Context, _ int) (int, error) {
			return unencodable.Call(ctx, func() {}).Await()
		}, "unsupported type"},
		"policy that makes no sense": {func(ctx *Context, _ int) (int, error) {
			return step.Call(ctx, 3, WithRetry(Retry{Coefficient: 0.5, Jitter: 2})).Await()
		}, "Coefficient is below 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			out := mustRun(t, w.process(t, nil, NewOrchestrator("test", tt.fn), step), startOf("a", 0))
			if out.Status != Failed || !strings.Contains(out.Failure.Message, tt.want) {
				t.Errorf("%s: %v", out.Status, out.Failure)
			}
			w.stored(t, "a")
		})
	}
	t.Run("unknown activity", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) { return unregistered.Call(ctx, 1).Await() })
		if _, err := w.process(t, nil, o).Run(t.Context(), startOf("a", 0)); !errors.Is(err, ErrUnknownActivity) || !strings.Contains(err.Error(), `"unregistered"`) {
			t.Errorf("error %v", err)
		}
		// It waits for a process that has the activity.
		if out := mustRun(t, w.process(t, nil, o, unregistered), startOf("a", 0)); out.Status != Completed || out.Execution != 1 {
			t.Errorf("%+v", out)
		}
	})
}

// runtime.Goexit in an orchestrator, which t.Fatal calls, fails the run like a panic, in any place.
func TestGoexitFailsTheRun(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]func(*Context, int) (int, error){
		"at the beginning": func(*Context, int) (int, error) { runtime.Goexit(); return 0, nil },
		"after a wait": func(ctx *Context, _ int) (int, error) {
			_ = ctx.Sleep(time.Hour)
			runtime.Goexit()
			return 0, nil
		},
		"behind a recover": func(ctx *Context, _ int) (int, error) {
			defer func() { _ = recover() }()
			runtime.Goexit()
			return 0, nil
		},
		"before a wait in a deferred function": func(ctx *Context, _ int) (int, error) {
			defer func() { _ = ctx.Sleep(time.Hour) }()
			runtime.Goexit()
			return 0, nil
		},
		"in a coroutine": func(ctx *Context, _ int) (int, error) {
			f := Go(ctx, func(ctx *Context) (int, error) { _ = ctx.Sleep(time.Hour); runtime.Goexit(); return 0, nil })
			return f.Await()
		},
		"in a coroutine for which nobody waits": func(ctx *Context, _ int) (int, error) {
			Go(ctx, func(ctx *Context) (int, error) { _ = ctx.Sleep(time.Hour); runtime.Goexit(); return 0, nil })
			return Event[int](ctx, "never").Await()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t)
				rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", code)}, nil)
				must(rt.Start(t.Context(), startOf("a", 0)))(t)
				w.settle(t, rt)
				out := mustGet(t, rt, "a")
				if f := out.Failure; out.Status != Failed || f.Code != "panic" || !strings.Contains(f.Message, "Goexit") ||
					!strings.Contains(f.Stack, "misuse_test.go") {
					t.Errorf("%s: %+v", out.Status, out.Failure)
				}
				w.replays(t, rt)
			})
		})
	}
}

// Parking a waiting orchestrator runs its deferred functions once, and no recover keeps it running.
func TestLeavingRunsDeferredFunctions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	var deferred, survived atomic.Int32
	block := NewActivity("block", func(ctx context.Context, n int) (int, error) {
		cancel()
		<-ctx.Done()
		return 0, ctx.Err()
	})
	o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		defer func() { deferred.Add(1); panic("in a deferred function") }()
		for {
			func() {
				defer func() { _ = recover() }()
				_, _ = block.Call(ctx, n).Await()
				survived.Add(1)
			}()
		}
	})
	out, err := w.process(t, nil, o, block).Run(ctx, startOf("a", 0))
	if err != nil || out.Status != Running || deferred.Load() != 1 || survived.Load() != 0 {
		t.Errorf("%v %v, deferred %d times, went on %d times", out.Status, err, deferred.Load(), survived.Load())
	}
}

func TestAnIDBelongsToOneOrchestration(t *testing.T) {
	t.Parallel()
	w, l := newWorld(t), &ledger{}
	step := l.step("step")
	mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 1))
	s := startOf("a", 1)
	s.CorrelationID = "another"
	if _, err := w.process(t, nil, sequence(step), step).Run(t.Context(), s); !errors.Is(err, ErrConflict) {
		t.Errorf("another correlation id: %v", err)
	}
	s = startOf("a", 1)
	s.Orchestrator = "unknown"
	if _, err := w.process(t, nil, sequence(step), step).Run(t.Context(), s); !errors.Is(err, ErrUnknownOrchestrator) {
		t.Errorf("unknown orchestrator: %v", err)
	}
	for _, s := range []Start{{Orchestrator: "test", Input: []byte("1")}, {ID: "a", Orchestrator: "test", Input: []byte("{")},
		{ID: strings.Repeat("x", 401), Orchestrator: "test", Input: []byte("1")}, {ID: "\xff", Orchestrator: "test", Input: []byte("1")}} {
		if _, err := w.process(t, nil, sequence(step), step).Run(t.Context(), s); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	for _, id := range []string{"a/b\\c#d?e", "zürich 日本", "-", strings.Repeat("?", 100)} {
		if out := mustRun(t, w.process(t, nil, sequence(step), step), startOf(id, 1)); out.Status != Completed {
			t.Errorf("%q: %s", id, out.Status)
		}
	}
}

func TestNewNamesEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := New(Config{MaxActivities: -1, Orchestrators: []AnyOrchestrator{&Orchestrator[int, int]{}, &Orchestrator[int, int]{name: "a"}, &Orchestrator[int, int]{name: "a"}},
		Activities: []AnyActivity{NewActivity[int, int]("", nil), (&ledger{}).step("x"), (&ledger{}).step("x")}})
	for _, want := range []string{"tables and blobs", "numbers and times must be positive", "orchestrator needs a name", "orchestrator a is registered twice", "activity needs", "activity x is registered twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
