package orchestrator

import (
	"context"
	"errors"
	"testing"
	"time"
)

// An event that arrives between two attempts is acknowledged only when the next attempt has it, whichever of the two
// rounds is committed first.
func TestAnEventBetweenAttemptsIsNotLost(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T){}
	for name, eventFirst := range map[string]bool{"the event is first": true, "the attempt is first": false} {
		tests[name] = func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			picky := l.picky()
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				if _, err := picky.Call(ctx, n).Await(); err != nil {
					return 0, err
				}
				return Event[int](ctx, "number").Await()
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{picky})
			wants(t, "the first attempt", mustRun(t, rt, willRetry(startOf("a", 1))).Status, Retrying)
			attempt := func(rt *Runtime) error { _, err := rt.Run(t.Context(), willRetry(startOf("a", 1))); return err }
			event := func(rt *Runtime) error {
				_, err := rt.Deliver(t.Context(), eventSignal("a", "e1", "number", "7"))
				return err
			}
			late, first, round := attempt, event, 2 // before it, a start tries to be the first
			if !eventFirst {
				late, first, round = event, attempt, 1
			}
			slow := w.intercepted(t, atApply(round, func() { isError(t, "who is first", first(rt), nil) }),
				Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{picky}, ScheduleQueue: signalQueue})
			for range 3 { // it is redelivered until it is acknowledged
				if late(slow) == nil {
					break
				}
			}
			w.settle(t, rt)
			wants(t, "it ends", stands(t, rt, "a"), "Completed 7")
			w.stored(t, "a")
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// Work that a suspension held back is done when it is over: no other process has a message that would trigger it.
func TestAResumeGoesOnWithWhatWasHeldBack(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T){}
	for name, before := range map[string]bool{"an attempt that was due meanwhile": false, "a call that was made before": true} {
		tests[name] = func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			flaky := NewActivity("flaky", func(ctx context.Context, n int) (int, error) {
				if l.add("flaky") == 1 && !before {
					return 0, errors.New("not yet")
				}
				return n, nil
			}, WithRetry(Retry{MaxAttempts: 2, FirstInterval: 2 * time.Hour, MaxInterval: 2 * time.Hour}))
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return flaky.Call(ctx, n).Await() })
			rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{flaky})
			if before { // its process times out when it has committed the call, so that its message is redelivered in the suspension
				slow := NewActivity("flaky", func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if out, err := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{slow}).Run(ctx, startOf("a", 1)); err != nil || out.Woken {
					t.Fatalf("%+v %v", out, err)
				}
			} else {
				mustRun(t, rt, startOf("a", 1))
			}
			isError(t, "suspend", rt.Suspend(t.Context(), "a", ""), nil)
			w.deliver(t.Context(), t, rt)
			if before {
				mustRun(t, rt, startOf("a", 1))
			}
			ran := l.count("flaky")
			w.attend(t, rt, 5*time.Hour)
			wants(t, "while it is suspended", mustGet(t, rt, "a").Status, Suspended)
			wants(t, "attempts", l.count("flaky"), ran)
			isError(t, "resume", rt.Resume(t.Context(), "a", ""), nil)
			w.attend(t, rt, 10*time.Minute)
			wants(t, "it ends", stands(t, rt, "a"), "Completed 1")
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// A caller that has canceled a call, and continues for hours, and its sub-orchestration do not notify each other
// repeatedly.
func TestACanceledCallCostsAHandfulOfMessages(t *testing.T) {
	t.Parallel()
	child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) { return Event[int](ctx, "never").Await() })
	ways := map[string]func(*Context, *Future[int]) error{
		"by the code": func(ctx *Context, called *Future[int]) error {
			if err := ctx.Sleep(time.Hour); err != nil {
				return err
			}
			Cancel(ctx, called)
			return ctx.Sleep(10 * time.Hour)
		},
		"by an operator": func(ctx *Context, called *Future[int]) error {
			if _, err := called.Await(); !errors.Is(err, ErrCanceled) {
				return err
			}
			return WithoutCancel(ctx).Sleep(10 * time.Hour)
		},
	}
	tests := map[string]func(*testing.T){}
	for name, way := range ways {
		tests[name] = func(t *testing.T) {
			w, sent := newWorld(t), 0
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return n, way(ctx, child.Call(ctx, n)) })
			rt := w.counting(t, &sent, o, child)
			mustRun(t, rt, startOf("a", 1))
			time.Sleep(time.Hour)
			if name == "by an operator" {
				isError(t, "cancel", rt.Cancel(t.Context(), "a", "no need"), nil)
			}
			for range 100 {
				w.deliver(t.Context(), t, rt)
			}
			if sent > 8 {
				t.Fatalf("%d messages at once", sent)
			}
			w.attend(t, rt, 11*time.Hour)
			if sent > 12 {
				t.Errorf("%d messages", sent)
			}
			out := mustGet(t, rt, "a")
			wants(t, "it ends", out.Status, Completed)
			wants(t, "the child", mustGet(t, rt, out.Calls[0].Child).Status, Canceled)
			wants(t, "messages left", w.waitingMessages(t), 0)
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}
