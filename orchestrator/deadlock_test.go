package orchestrator

import (
	"strings"
	"testing"
	"time"
)

// A run that can never continue is stalled with the lines of its waits, costs no rounds while it is, and ends when it
// is canceled or times out.
func TestDeadlockedRunsAreStalled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits func(ctx *Context) error
		want  string
	}{
		"receive":   {func(ctx *Context) error { _, _, err := NewChannel[int](ctx, 0).Receive(ctx); return err }, "receive from a channel at "},
		"send":      {func(ctx *Context) error { return NewChannel[int](ctx, 0).Send(ctx, 1) }, "send to a channel at "},
		"condition": {func(ctx *Context) error { return WaitUntil(ctx, func() bool { return false }) }, "a condition at "},
		"group":     {func(ctx *Context) error { var g WaitGroup; g.Add(1); return g.Wait(ctx) }, "a wait group at "},
		"a timer that nobody waits for": {func(ctx *Context) error {
			Timer(ctx, 40*24*time.Hour)
			var a *Future[int]
			a = Go(ctx, func(ctx *Context) (int, error) { ctx.Sleep(time.Second); return a.Await() })
			_, err := a.Await()
			return err
		}, "a coroutine at "},
		"futures that wait for each other": {func(ctx *Context) error {
			var a, b *Future[int]
			a = Go(ctx, func(ctx *Context) (int, error) { ctx.Sleep(time.Second); return b.Await() })
			b = Go(ctx, func(ctx *Context) (int, error) { ctx.Sleep(time.Second); return a.Await() })
			_, err := a.Await()
			return err
		}, "a coroutine at "},
	} {
		for how, end := range map[string]Status{"canceled": Canceled, "timed out": Failed} {
			t.Run(name+", "+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					w := newWorld(t)
					rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) (int, error) { return 0, test.waits(ctx) })}, nil)
					s := startOf("a", 1)
					s.Timeout = 30 * 24 * time.Hour
					_, _ = rt.Run(t.Context(), s)
					w.attend(t, rt, time.Hour)
					out := mustGet(t, rt, "a")
					if out.Status != Stalled || !strings.Contains(out.Failure.Message, test.want) || !strings.Contains(out.Failure.Message, "deadlock_test.go:") {
						t.Fatalf("it is %s", stands(t, rt, "a"))
					}
					before := w.rows(t, "a")
					w.attend(t, rt, 3*time.Hour)
					w.unchanged(t, "a", before)
					if end == Canceled {
						noError(t, rt.Cancel(t.Context(), "a", "enough"))
					} else {
						time.Sleep(31 * 24 * time.Hour)
					}
					w.attend(t, rt, 3*time.Hour)
					wants(t, "it ends", mustGet(t, rt, "a").Status, end)
				})
			})
		}
	}
}

// A run that can still be woken is not stalled, even if no coroutine waits for a call.
func TestWaitsThatSomethingCanEnd(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]func(ctx *Context) error{
		"a condition over an event": func(ctx *Context) error {
			f := Event[int](ctx, "number")
			done := false
			Go(ctx, func(*Context) (int, error) { v, err := f.Await(); done = true; return v, err })
			return WaitUntil(ctx, func() bool { return done })
		},
		"a condition over a timer that nobody awaits": func(ctx *Context) error {
			f := Timer(ctx, 3*time.Hour)
			return WaitUntil(ctx, f.Done)
		},
		"a channel behind a timer": func(ctx *Context) error {
			c := NewChannel[int](ctx, 0)
			Go(ctx, func(ctx *Context) (int, error) { ctx.Sleep(3 * time.Hour); return 0, c.Send(ctx, 1) })
			_, _, err := c.Receive(ctx)
			return err
		},
		"an answer with an escalation": func(ctx *Context) error {
			_, err := AskPerson[int](ctx, HumanTask{Name: "ask", Escalation: &Escalation{After: time.Minute, Roles: []string{"ops"}}}).Await()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t)
				rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, _ int) (int, error) { return 0, waits(ctx) })}, nil)
				mustRun(t, rt, startOf("a", 1))
				noError(t, rt.Suspend(t.Context(), "a", "a while"))
				w.attend(t, rt, 10*time.Minute)
				noError(t, rt.Resume(t.Context(), "a", "on"))
				w.attend(t, rt, time.Hour)
				wants(t, "it waits", mustGet(t, rt, "a").Status, Running)
			})
		})
	}
}
