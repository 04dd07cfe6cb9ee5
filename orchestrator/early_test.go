package orchestrator

import (
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// An event that arrives before its orchestration is requeued with growing pauses, for a day, and is delivered when the
// orchestration begins.
func TestEventsBeforeTheStart(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 1, "in a blob": queues.MaxBody} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t)
				o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
					text, err := Event[string](ctx, "number").Await()
					return len(text), err
				})
				rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
				noError(t, rt.Raise(t.Context(), "a", "number", incompressible(size), "e"))
				s, _, ok := w.receive(t, 100*time.Hour)
				if !ok {
					t.Fatal("no message")
				}
				tries := 0
				for begin := time.Now(); time.Since(begin) < 23*time.Hour; tries++ {
					_, err := rt.Deliver(t.Context(), s)
					early, isEarly := errors.AsType[*EarlyError](err)
					if !isEarly || !errors.Is(err, ErrEarly) || !errors.Is(err, ErrNotFound) {
						t.Fatalf("%v", err)
					}
					time.Sleep(early.After)
				}
				if tries > 250 {
					t.Errorf("%d tries within a day", tries)
				}
				mustRun(t, rt, startOf("a", 1))
				noError(t, errorOf(rt.Deliver(t.Context(), s)))
				if out := mustGet(t, rt, "a"); out.Status != Completed {
					t.Errorf("it is %s", stands(t, rt, "a"))
				}
				noError(t, rt.Raise(t.Context(), "b", "number", "x", "e"))
				s, _, _ = w.receive(t, time.Minute)
				time.Sleep(25 * time.Hour)
				if _, err := rt.Deliver(t.Context(), s); errors.Is(err, ErrEarly) || !errors.Is(err, ErrNotFound) {
					t.Errorf("a day later: %v", err)
				}
			})
		})
	}
}

// An abandoned sub-orchestration that is not awaited does not keep its caller, and runs also when its caller ended in
// the turn that called it.
func TestAbandonedChildrenOutliveTheirCaller(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]time.Duration{"the caller ends at once": 0, "the caller ends later": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				text := incompressible(2 * spillFrom)
				step := l.step("step")
				child := NewOrchestrator("child", func(ctx *Context, text string) (int, error) {
					ctx.Sleep(24 * time.Hour)
					return step.Call(ctx, len(text)).Await()
				})
				o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
					child.Call(ctx, text, WithParentClose(AbandonChild))
					ctx.Sleep(waits)
					return ctx.ID(), nil
				})
				code := func() *Runtime { return w.signalling(t, nil, []AnyOrchestrator{o, child}, []AnyActivity{step}) }
				mustRun(t, code(), startOf("a", 1))
				w.attend(t, code(), 2*time.Hour)
				wants(t, "the caller", stands(t, code(), "a"), `Completed "a"`)
				w.attend(t, code(), 30*time.Hour)
				wants(t, "steps of the child", l.all()["step(131072)"], 1)
				w.replays(t, code())
			})
		})
	}
}

// A coroutine that is canceled before it has begun leaves nothing behind: goleak checks the end of all tests.
func TestACoroutineThatNeverBegins(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		o := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
			f := Go(ctx, func(*Context) (int, error) { return 1, nil })
			Cancel(ctx, f)
			_, err := f.Await()
			return "", Permanent(err)
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		mustRun(t, rt, startOf("a", 1))
		wants(t, "it ends", stands(t, rt, "a"), "Failed: Go: canceled")
	})
}
