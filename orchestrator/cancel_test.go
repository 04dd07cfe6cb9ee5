package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
)

// blocking is an activity that runs until its context ends, and counts its outcomes.
func blocking(l *ledger, name string, options ...CallOption) *Activity[int, int] {
	return NewActivity(name, func(ctx context.Context, n int) (int, error) {
		l.add(name)
		<-ctx.Done()
		l.add(name + " stopped")
		return n, nil // its result does not count
	}, options...)
}

func canceledText(err error) string {
	if err == nil {
		return "done"
	}
	if errors.Is(err, ErrCanceled) {
		return "canceled"
	}
	return err.Error()
}

// withCancels cancels one call of each kind.
func withCancels(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
	slow, step := blocking(l, "slow"), l.step("step")
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		_, err := Event[int](ctx, "never").Await()
		if reason, canceled := ctx.Canceled(); !canceled || !strings.Contains(reason, "a canceled it") {
			return 0, fmt.Errorf("canceled %v: %q", canceled, reason)
		}
		if _, undo := step.Call(ctx, n+1).Await(); !errors.Is(undo, ErrCanceled) {
			return 0, fmt.Errorf("a call that is not shielded gives %w", undo)
		}
		if _, undo := step.Call(WithoutCancel(ctx), n).Await(); undo != nil {
			return 0, undo
		}
		return 0, err
	})
	o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
		finished := step.Call(ctx, 1)
		if _, err := finished.Await(); err != nil {
			return "", err
		}
		activity, timer, event, sub := slow.Call(ctx, 1), Timer(ctx, 48*time.Hour), Event[int](ctx, "never"), child.Call(ctx, 100)
		coroutine := Go(ctx, func(ctx *Context) (int, error) {
			_, err := Event[int](ctx, "never").Await()
			return 0, err
		})
		_ = ctx.Sleep(time.Second)
		Cancel(ctx, finished, activity, timer, event, sub, coroutine)
		Cancel(ctx, activity, timer) // they are done
		said := []string{}
		_, err := finished.Await()
		said = append(said, canceledText(err))
		_, err = activity.Await()
		said = append(said, canceledText(err))
		_, err = timer.Await()
		said = append(said, canceledText(err))
		_, err = event.Await()
		said = append(said, canceledText(err))
		_, err = sub.Await()
		said = append(said, canceledText(err))
		_, err = coroutine.Await()
		said = append(said, canceledText(err))
		if _, canceled := ctx.Canceled(); canceled {
			said = append(said, "the orchestration itself is canceled")
		}
		return strings.Join(said, " "), nil
	})
	return []AnyOrchestrator{o, child}, []AnyActivity{slow, step}
}

func TestCancelOfCalls(t *testing.T) {
	t.Parallel()
	f := flow{make: withCancels, output: `"done canceled canceled canceled canceled canceled"`}
	f.check = func(t *testing.T, w *world, rt *Runtime, l *ledger) {
		out := mustGet(t, rt, "a")
		for i, want := range []bool{false, true, true, true, true, false, true} { // the timer of the Sleep, then the coroutine's event
			if c := out.Calls[i]; (c.Failure != nil && errors.Is(c.Failure, ErrCanceled)) != want {
				t.Errorf("call %d, %s %s: %v", i+1, c.Kind, c.Name, c.Failure)
			}
		}
		child := mustGet(t, rt, out.Calls[4].Child)
		if child.Status != Canceled || !errors.Is(child.Failure, ErrCanceled) {
			t.Errorf("the child is %s: %v", child.Status, child.Failure)
		}
		if l.count("step(100)") == 0 || l.count("step(101)") != 0 {
			t.Errorf("what the child undid, shielded and not: %v", l.all())
		}
		if l.count("slow") != l.count("slow stopped") {
			t.Errorf("calls: %v", l.all())
		}
		if end := out.EndedAt.Sub(out.StartedAt); end > 2*time.Hour {
			t.Errorf("it ended after %v", end)
		}
	}
	f.runs(t, faults.Faults()...)
}

// An operator cancels: all waits are interrupted, for good; calls that the code shields from that run, once.
func TestCancelOfAnOrchestration(t *testing.T) {
	t.Parallel()
	make := func(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
		step := l.step("step")
		child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) { return Event[int](ctx, "never").Await() })
		o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
			coroutine := Go(ctx, func(ctx *Context) (time.Time, error) { return Timer(ctx, 100*time.Hour).Await() })
			_, err := child.Call(ctx, 1).Await()
			if !errors.Is(err, ErrCanceled) {
				return "", fmt.Errorf("the child gave %w", err)
			}
			if _, err := coroutine.Await(); !errors.Is(err, ErrCanceled) {
				return "", fmt.Errorf("the coroutine gave %w", err)
			}
			reason, canceled := ctx.Canceled()
			if slept := ctx.Sleep(time.Hour); !errors.Is(slept, ErrCanceled) {
				return "", fmt.Errorf("a sleep gave %w", slept)
			}
			calm := WithoutCancel(ctx)
			if slept := calm.Sleep(time.Hour); slept != nil { // its later waits are its own
				return "", slept
			}
			if _, undo := step.Call(calm, 7).Await(); undo != nil {
				return "", undo
			}
			return "", fmt.Errorf("canceled %v because of %q: %w", canceled, reason, err)
		})
		return []AnyOrchestrator{o, child}, []AnyActivity{step}
	}
	cancel := func(at time.Duration) outside {
		return outside{at, func(ctx context.Context, rt *Runtime) error { return rt.Cancel(ctx, "a", "no need") }}
	}
	f := flow{make: make, status: Canceled, steps: []outside{cancel(time.Hour), cancel(90 * time.Minute), cancel(5 * time.Hour)}}
	f.check = func(t *testing.T, w *world, rt *Runtime, l *ledger) {
		out := mustGet(t, rt, "a")
		if !strings.Contains(out.Failure.Message, "no need") || !errors.Is(out.Failure, ErrCanceled) || !out.Failure.Permanent {
			t.Errorf("%+v", out.Failure)
		}
		if end := out.EndedAt.Sub(out.StartedAt); end < 2*time.Hour {
			t.Errorf("it ended after %v, before what it slept for", end)
		}
		if l.count("step(7)") == 0 {
			t.Error("it has not undone anything: the second cancellation has interrupted it")
		}
		if child := mustGet(t, rt, out.Calls[0].Child); child.Status != Canceled {
			t.Errorf("the child is %s", child.Status)
		}
		if out := mustRun(t, rt, startOf("a", 1)); out.Status != Canceled || out.Execution != 1 {
			t.Errorf("a message revived it: %+v", out)
		}
	}
	f.runs(t, faults.CrashBefore, faults.CrashAfter)
}

// A cancellation is an ErrCanceled in every place, and no retry can fix it.
func TestCanceledIsErrCanceledThroughParents(t *testing.T) {
	t.Parallel()
	make := func(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
		leaf := NewOrchestrator("leaf", func(ctx *Context, n int) (int, error) { return Event[int](ctx, "never").Await() })
		branch := NewOrchestrator("branch", func(ctx *Context, n int) (int, error) {
			l.add("branch")
			v, err := leaf.Call(ctx, n, WithRetry(Retry{MaxAttempts: 5})).Await()
			return v, err
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
			_, err := branch.Call(ctx, n, WithRetry(Retry{MaxAttempts: 5})).Await()
			failed, ok := errors.AsType[*OrchestrationError](err)
			return fmt.Sprint(ok && failed.Orchestrator == "branch", errors.Is(err, ErrCanceled), IsPermanent(err)), nil
		})
		return []AnyOrchestrator{o, branch, leaf}, nil
	}
	f := flow{make: make, output: `"true true true"`}
	f.steps = []outside{{time.Minute, func(ctx context.Context, rt *Runtime) error {
		parent, err := rt.Get(ctx, "a")
		if err != nil {
			return err
		}
		branch, err := rt.Get(ctx, parent.Calls[0].Child)
		if err != nil {
			return err
		}
		return rt.Cancel(ctx, branch.Calls[0].Child, "by hand")
	}}}
	f.runs(t, faults.CrashBefore, faults.CrashAfter)
}

// A cancellation reaches a running activity, by its context and by its next heartbeat, from another process too.
func TestCancelReachesARunningActivity(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		for _, command := range []string{commandCancel, commandTerminate} {
			t.Run(fmt.Sprint(command, "-elsewhere-", elsewhere), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, l := newWorld(t), &ledger{}
					busy := NewActivity("busy", func(ctx context.Context, _ int) (int, error) {
						for i := 0; ; i++ {
							if err := Heartbeat(ctx, i); err != nil {
								l.add("stopped")
								return 0, err
							}
							select {
							case <-ctx.Done():
							case <-time.After(time.Second):
							}
						}
					})
					o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return busy.Call(ctx, n).Await() })
					here := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{busy})
					done := runInBackground(t.Context(), here, startOf("a", 1))
					time.Sleep(10 * time.Second)
					noError(t, here.signal(t.Context(), "a", Payload{Command: command, Reason: "enough"}, ""))
					deliverer := here
					if elsewhere {
						deliverer = w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{busy})
					}
					sent := time.Now()
					if !w.deliver(t.Context(), t, deliverer) {
						t.Fatal("no signal")
					}
					r := <-done
					if want := map[string]Status{commandCancel: Canceled, commandTerminate: Terminated}[command]; r.err != nil || r.out.Status != want {
						t.Errorf("%s %v, want %s", r.out.Status, r.err, want)
					}
					if l.count("stopped") != 1 || time.Since(sent) > here.config.ProgressInterval+time.Minute {
						t.Errorf("calls %v after %v", l.all(), time.Since(sent))
					}
					w.replays(t, here)
				})
			})
		}
	}
}

// Coroutines that have not begun, that have ended and that wait for each other can be canceled.
func TestCancelOfCoroutines(t *testing.T) {
	t.Parallel()
	make := func(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
		o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
			early := Go(ctx, func(ctx *Context) (int, error) { l.add("early"); return Event[int](ctx, "never").Await() })
			Cancel(ctx, early)
			_, err := early.Await()
			said := canceledText(err)
			ended := Go(ctx, func(*Context) (int, error) { return 1, nil })
			_, err = ended.Await()
			Cancel(ctx, ended)
			_, again := ended.Await()
			said += " " + canceledText(err) + " " + canceledText(again)
			var a, b *Future[int]
			a = Go(ctx, func(*Context) (int, error) { return b.Await() })
			b = Go(ctx, func(*Context) (int, error) { return a.Await() })
			_ = ctx.Sleep(time.Second)
			Cancel(ctx, a, b) // nothing can wake them; they end with the orchestration
			return "", errors.New(said)
		})
		return []AnyOrchestrator{o}, nil
	}
	f := flow{make: make, status: Failed}
	f.check = func(t *testing.T, w *world, rt *Runtime, l *ledger) {
		if out := mustGet(t, rt, "a"); out.Failure.Message != "canceled done done" {
			t.Error(out.Failure.Message)
		}
		if l.count("early") != 0 {
			t.Error("a coroutine began that had been canceled")
		}
	}
	f.runs(t)
}
