package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
)

// versioned is an orchestrator that returns its version, waits for an event, returns it again and, the first time,
// continues as new.
func versioned(v string) *Orchestrator[string, string] {
	return NewOrchestrator("test", func(ctx *Context, said string) (string, error) {
		said += v
		if v == "2" {
			_ = ctx.Sleep(time.Second) // it decides otherwise
		}
		if _, err := Event[int](ctx, "number").Await(); err != nil {
			return "", err
		}
		if said += v; len(said) < 4 {
			return "", ContinueAsNew(said)
		}
		return said, nil
	}, WithVersion(v))
}

// A running execution keeps its version, a new one takes the version that was registered last, and without its version
// it stalls.
func TestVersions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		one, two := versioned("1"), versioned("2")
		old := w.signalling(t, nil, []AnyOrchestrator{one}, nil)
		both := w.signalling(t, nil, []AnyOrchestrator{one, two}, nil)
		only := w.signalling(t, nil, []AnyOrchestrator{two}, nil)
		mustRun(t, old, startOf("a", ""))
		mustRun(t, both, startOf("b", ""))
		if a, b := w.status(t, "a"), w.status(t, "b"); a.String("Version") != "1" || b.String("Version") != "2" {
			t.Errorf("versions %q %q", a.String("Version"), b.String("Version"))
		}
		before := w.stored(t, "a")
		_, err := only.Run(t.Context(), startOf("a", ""))
		if !errors.Is(err, ErrStalled) || !errors.Is(err, ErrUnknownOrchestrator) || !strings.Contains(err.Error(), `"test" began in the version "1"`) {
			t.Errorf("without its version: %v", err)
		}
		signal := eventSignal("a", "e1", "number", "1")
		for range 2 {
			if out, err := only.Deliver(t.Context(), signal); err != nil || out.Status != Stalled {
				t.Errorf("without its version: %s %v", out.Status, err)
			}
		}
		w.onlyStalled(t, "a", before, "e1")
		w.attend(t, both, time.Hour) // the sweeper finds that it is back
		if w.status(t, "a").String("Version") != "2" {
			t.Error("what continues as new keeps the old version")
		}
		for i, id := range []string{"a", "b", "b"} {
			time.Sleep(time.Minute)
			if _, err := only.Deliver(t.Context(), eventSignal(id, fmt.Sprint("f", i), "number", "1")); err != nil {
				t.Error(err)
			}
		}
		if a, b := mustGet(t, only, "a"), mustGet(t, only, "b"); string(a.Output) != `"1122"` || string(b.Output) != `"2222"` || a.Version != "2" {
			t.Errorf("%s %v, %s %v", a.Output, a.Failure, b.Output, b.Failure)
		}
		if _, err := New(Config{Tables: w.tables, Blobs: w.blobs, Orchestrators: []AnyOrchestrator{one, two, versioned("1")}}); err == nil {
			t.Error("a version can be registered twice")
		}
	})
}

// A start may request a version for the first execution: one that continues as new, or starts over, takes the latest.
func TestVersionOfAStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		rt := w.signalling(t, nil, []AnyOrchestrator{versioned("1"), versioned("2")}, nil)
		for id, v := range map[string]string{"a": "1", "b": "2", "c": ""} {
			s := startOf(id, "")
			s.Version = v
			noError(t, errorOf(rt.Start(t.Context(), s)))
		}
		w.attend(t, rt, time.Minute)
		for id, want := range map[string]string{"a": "1", "b": "2", "c": "2"} {
			if got := mustGet(t, rt, id).Version; got != want {
				t.Errorf("%s has the version %q", id, got)
			}
		}
		noError(t, errorOf(rt.Deliver(t.Context(), eventSignal("a", "e", "number", "1"))))
		if out := mustGet(t, rt, "a"); out.Version != "2" || out.Execution != 2 {
			t.Errorf("it continues as new in the version %q, execution %d", out.Version, out.Execution)
		}
		inline := startOf("d", "")
		inline.Version = "1"
		mustRun(t, rt, inline)
		if out := mustGet(t, rt, "d"); out.Version != "1" {
			t.Errorf("run in place: version %q", out.Version)
		}
		unknown := startOf("e", "")
		unknown.Version = "3"
		if _, err := rt.Start(t.Context(), unknown); !errors.Is(err, ErrUnknownOrchestrator) || !strings.Contains(err.Error(), `version "3"`) {
			t.Errorf("a version that nobody has: %v", err)
		}
	})
}

// An event that no call waits for is dropped, with one warning; the option applies to executions that began with it.
func TestDropEarlyEvents(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		make := func(options ...OrchestratorOption) *Orchestrator[int, string] {
			return NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
				_ = ctx.Sleep(time.Hour)
				e := Event[int](ctx, "number")
				if Any(ctx, e, Timer(ctx, time.Hour)) == 1 {
					return "none", nil
				}
				v, err := e.Await()
				return fmt.Sprint(v), err
			}, options...)
		}
		dropping, keeping := make(DropEarlyEvents()), make()
		var log bytes.Buffer
		logged := func(o AnyOrchestrator) *Runtime {
			rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
			rt.config.Log = slog.New(slog.NewTextHandler(&log, nil))
			return rt
		}
		first, then := logged(dropping), logged(keeping)
		mustRun(t, first, startOf("a", 1))
		mustRun(t, then, startOf("b", 1))
		for _, id := range []string{"a", "b"} { // code and option have changed meanwhile
			noError(t, errorOf(then.Deliver(t.Context(), eventSignal(id, "early", "number", "1"))))
		}
		time.Sleep(61 * time.Minute)
		for w.deliver(t.Context(), t, then) {
		}
		for _, rt := range []*Runtime{then, first} {
			noError(t, errorOf(rt.Deliver(t.Context(), eventSignal("a", "early", "number", "1"))))
		}
		w.settle(t, then)
		if a, b := mustGet(t, then, "a"), mustGet(t, then, "b"); string(a.Output) != `"none"` || string(b.Output) != `"1"` {
			t.Errorf("%s %v, %s %v", a.Output, a.Failure, b.Output, b.Failure)
		}
		if n := strings.Count(log.String(), "nobody waits for the event"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, log.String())
		}
		w.replays(t, first)
		w.replays(t, then)
	})
}

// Retryable sees the typed error, its answer is recorded, and a panic in it is a failure of the call.
func TestRetryable(t *testing.T) {
	t.Parallel()
	asked := 0
	f := flow{output: `"3 1 1"`, make: func(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
		step := NewActivity("step", func(ctx context.Context, n int) (int, error) {
			return 0, &vaultError{"v", 400 + Info(ctx).Attempt + n}
		}, WithError[*vaultError]())
		o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
			policy := Retry{MaxAttempts: 5, FirstInterval: time.Minute, Retryable: func(err error) bool {
				asked++
				v, ok := errors.AsType[*vaultError](err)
				return ok && v.Code < 403
			}}
			attempts := []any{}
			for _, n := range []int{0, 100} {
				_, err := step.Call(ctx, n, WithRetry(policy)).Await()
				failed, _ := errors.AsType[*ActivityError](err)
				attempts = append(attempts, failed.Attempt)
			}
			policy.Retryable = func(error) bool { panic("what is this?") }
			_, err := step.Call(ctx, 0, WithRetry(policy)).Await()
			failed, _ := errors.AsType[*ActivityError](err)
			return fmt.Sprint(append(attempts, failed.Attempt)...), nil
		})
		return []AnyOrchestrator{o}, []AnyActivity{step}
	}}
	f.check = func(t *testing.T, w *world, rt *Runtime, l *ledger) {
		before := asked
		if w.replays(t, rt); asked != before {
			t.Error("a replay asks again")
		}
	}
	f.runs(t, faults.CrashBefore, faults.CrashAfter)
}

type sour struct{}

func (*sour) MarshalJSON() ([]byte, error) { panic("marshal") }
func (*sour) Error() string                { panic("text") }

// User code that panics when an error is inspected fails the call or the orchestration, and nothing else.
func TestErrorsThatPanic(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"nil pointer": func() error { var e *vaultError; return e },
		"text":        func() error { return &sour{} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t)
				step := NewActivity("step", func(context.Context, int) (int, error) { return 0, fail() }, WithError[*sour](), WithError[*vaultError]())
				o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					if _, err := step.Call(ctx, n).Await(); err == nil {
						return 0, errors.New("no error")
					}
					return 0, fail()
				})
				again := NewOrchestrator("again", func(*Context, int) (int, error) { return 0, ContinueAsNew(&sour{}) })
				rt := w.signalling(t, nil, []AnyOrchestrator{o, again}, []AnyActivity{step})
				for _, name := range []string{"test", "again"} {
					s := startOf(name, 1)
					s.Orchestrator = name
					if out := mustRun(t, rt, s); out.Status != Failed || out.Failure.Code != "panic" {
						t.Errorf("%s: %s %+v", name, out.Status, out.Failure)
					}
				}
			})
		})
	}
}

// A sub-orchestration has the timeout of its call, in each of its executions.
func TestTimeoutOfASubOrchestration(t *testing.T) {
	t.Parallel()
	f := flow{output: `"TimedOut,false"`, make: func(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
		child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) { return Event[int](ctx, "never").Await() })
		o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
			_, err := child.Call(ctx, n, WithTimeout(2*time.Hour), WithRetry(Retry{MaxAttempts: 2, FirstInterval: time.Minute})).Await()
			failed, ok := errors.AsType[*OrchestrationError](err)
			if !ok {
				return "", fmt.Errorf("it gave %w", err)
			}
			return fmt.Sprintf("%s,%v", failed.Failure.Code, IsPermanent(err)), nil
		})
		return []AnyOrchestrator{o, child}, nil
	}}
	f.check = func(t *testing.T, w *world, rt *Runtime, l *ledger) {
		out := mustGet(t, rt, "a")
		child := mustGet(t, rt, out.Calls[0].Child)
		if d := child.EndedAt.Sub(child.StartedAt).Round(time.Hour); child.Execution < 2 || d != 2*time.Hour || len(child.Earlier) != child.Execution-1 {
			t.Errorf("execution %d ended after %v", child.Execution, d)
		}
	}
	f.runs(t, faults.CrashBefore, faults.CrashAfter)
}

// Work that an execution leaves running does not block the calls of the next one.
func TestContinueAsNewWithALoserThatStillRuns(t *testing.T) {
	t.Parallel()
	f := flow{output: `3`, make: func(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
		slow, step := blocking(l, "slow"), l.step("step")
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			if n == 3 {
				return step.Call(ctx, n-1).Await()
			}
			Any(ctx, slow.Call(ctx, n), Timer(ctx, time.Second))
			return 0, ContinueAsNew(n + 1)
		})
		return []AnyOrchestrator{o}, []AnyActivity{slow, step}
	}}
	f.check = func(t *testing.T, w *world, rt *Runtime, l *ledger) {
		if out := mustGet(t, rt, "a"); out.EndedAt.Sub(w.status(t, "a").Time("CreatedAtUtc")) > 20*time.Minute {
			t.Errorf("it ended at %v", out.EndedAt)
		}
	}
	f.runs(t, faults.CrashBefore, faults.CrashAfter)
}
