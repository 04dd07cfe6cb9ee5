package orchestrator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// From a cancellation on every wait returns it, whether it began before or begins after, and calls do nothing.
func TestEveryWaitGivesTheCancellation(t *testing.T) {
	t.Parallel()
	slow := NewActivity("slow", func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
	child := NewOrchestrator("child", func(ctx *Context, _ int) (int, error) { return Event[int](ctx, "never").Await() })
	waits := map[string]func(*Context) error{
		"an activity": func(ctx *Context) error { _, err := slow.Call(ctx, 1).Await(); return err },
		"a child":     func(ctx *Context) error { _, err := child.Call(ctx, 1).Await(); return err },
		"a timer":     func(ctx *Context) error { _, err := Timer(ctx, 48*time.Hour).Await(); return err },
		"a sleep":     func(ctx *Context) error { return ctx.Sleep(48 * time.Hour) },
		"an event":    func(ctx *Context) error { _, err := Event[int](ctx, "never").Await(); return err },
		"a person":    func(ctx *Context) error { _, err := AskPerson[answer](ctx, question()).Await(); return err },
		"a condition": func(ctx *Context) error { return WaitUntil(ctx, func() bool { return false }) },
		"a channel": func(ctx *Context) error {
			_, _, err := NewChannel[int](ctx, 1).Receive(ctx)
			return err
		},
		"the first of several": func(ctx *Context) error {
			event := Event[int](ctx, "never")
			Any(ctx, event, Timer(ctx, 48*time.Hour))
			_, err := event.Await()
			return err
		},
		"a coroutine": func(ctx *Context) error {
			_, err := Go(ctx, func(ctx *Context) (int, error) { return Event[int](ctx, "never").Await() }).Await()
			return err
		},
	}
	tests := map[string]func(*testing.T){}
	for name, wait := range waits {
		tests[name] = func(t *testing.T) {
			w := newWorld(t)
			var before, after error
			o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
				before = wait(ctx)
				after = wait(ctx)
				return 0, after
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{o, child}, []AnyActivity{slow})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
			defer cancel()
			done := runInBackground(ctx, rt, startOf("a", 1))
			time.Sleep(time.Minute)
			noError(t, rt.Cancel(t.Context(), "a", "no need"))
			w.attend(t, rt, 10*time.Minute)
			<-done
			isError(t, "the wait before", before, ErrCanceled)
			isError(t, "the wait after", after, ErrCanceled)
			wants(t, "it ends", mustGet(t, rt, "a").Status, Canceled)
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// Clean-up runs in a scope that the cancellation does not reach. The result of the code decides the end: Canceled
// after an error, Completed without one, and Failed for good after a failed clean-up.
func TestCleanUpRunsBehindACancellation(t *testing.T) {
	t.Parallel()
	ends := map[string]struct {
		cleanUp int // fails if it is 0
		keep    bool
		status  Status
	}{
		"the error of the wait":     {1, true, Canceled},
		"no error":                  {1, false, Completed},
		"the error of the clean-up": {0, true, Failed},
	}
	tests := map[string]func(*testing.T){}
	for name, end := range ends {
		tests["returns "+name] = func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			cleanUp := NewActivity("cleanUp", func(_ context.Context, n int) (int, error) {
				l.add("cleanUp")
				if n == 0 {
					return 0, errors.New("the volume is locked")
				}
				return n, nil
			})
			o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
				err := ctx.Sleep(24 * time.Hour)
				if !errors.Is(err, ErrCanceled) {
					return 0, err
				}
				calm := WithoutCancel(ctx)
				if slept := calm.Sleep(time.Hour); slept != nil {
					return 0, slept
				}
				if _, failed := cleanUp.Call(calm, end.cleanUp).Await(); failed != nil {
					return 0, failed
				}
				if !end.keep {
					err = nil
				}
				return 7, err
			})
			rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{cleanUp})
			mustRun(t, rt, willRetry(startOf("a", 1)))
			noError(t, rt.Cancel(t.Context(), "a", "no need"))
			w.attend(t, rt, 30*time.Minute)
			noError(t, rt.Cancel(t.Context(), "a", "no need at all"))
			w.attend(t, rt, time.Hour)
			out := mustGet(t, rt, "a")
			wants(t, "it ends", out.Status, end.status)
			wants(t, "clean-ups", l.count("cleanUp"), 1)
			if end.status == Failed && (!out.Failure.Permanent || !strings.Contains(out.Failure.Message, "the volume is locked")) {
				t.Errorf("%+v", out.Failure)
			}
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}
