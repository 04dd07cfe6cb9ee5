package orchestrator

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// deliverAll delivers signals until none arrives for a while, each to a process of its own, and returns how many it
// delivered. It fails when they exceed most.
func (w *world) deliverAll(t *testing.T, most int, orchestrators ...AnyOrchestrator) (delivered int) {
	t.Helper()
	for idle := 0; idle < 30; {
		rt := w.signalling(t, nil, orchestrators, nil)
		if !w.deliver(t.Context(), t, rt) {
			idle++
			time.Sleep(5 * time.Second)
			continue
		}
		idle = 0
		if delivered++; delivered > most {
			t.Fatalf("more than %d deliveries for orchestrations that only wait", most)
		}
	}
	return delivered
}

// A second attempt repeats events that were sent before. Duplicates cause no further work: the deliveries are bounded
// by the decisions, for all senders and receivers, and any number of attempts.
func TestDuplicatesCauseNoStorm(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		notes, asks     int
		continues, fail bool
	}{
		{name: "events to itself", notes: 2},
		{name: "questions and answers", asks: 2},
		{name: "both, after it continued as new", notes: 3, asks: 2, continues: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.forgetful = true
				stock := NewOrchestrator("stock", func(ctx *Context, _ int) (int, error) {
					for {
						from, err := Event[string](ctx, "ask").Await()
						if err == nil {
							err = RaiseEvent(ctx, from, "answer", 5)
						}
						if err != nil {
							return 0, err
						}
					}
				})
				order := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
					if test.continues && n == 0 {
						if err := RaiseEvent(ctx, "stock", "ask", ctx.ID()); err != nil {
							return "", err
						}
						return "", ContinueAsNew(1)
					}
					for i := range test.notes {
						if err := RaiseEvent(ctx, ctx.ID(), "note", i); err != nil {
							return "", err
						}
					}
					for range test.asks {
						if err := RaiseEvent(ctx, "stock", "ask", ctx.ID()); err != nil {
							return "", err
						}
						if _, err := Event[int](ctx, "answer").Await(); err != nil {
							return "", err
						}
					}
					return Event[string](ctx, "approved").Await()
				})
				all := []AnyOrchestrator{order, stock}
				rt := w.signalling(t, nil, all, nil)
				stocked := startOf("stock", 0)
				stocked.Orchestrator = "stock"
				mustRun(t, rt, stocked)
				s := startOf("a", 0)
				s.Timeout = time.Hour
				mustRun(t, rt, s)
				bound := 5 * (1 + test.notes + 2*(test.asks+1))
				for i := range 3 {
					w.deliverAll(t, bound, all...)
					time.Sleep(2 * time.Hour)
					w.deliverAll(t, bound, all...)
					if out := mustGet(t, rt, "a"); out.Status != Failed {
						t.Fatalf("%s, want that it timed out: %v", out.Status, out.Failure)
					}
					if _, err := rt.Rewind(t.Context(), "a", fmt.Sprint("request ", i)); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				w.deliverAll(t, bound, all...)
				if test.asks > 0 && time.Since(began) > 10*time.Minute {
					t.Errorf("the events of the last attempt came within %v", time.Since(began))
				}
				if err := rt.Raise(t.Context(), "a", "approved", "yes", ""); err != nil {
					t.Fatal(err)
				}
				w.deliverAll(t, bound, all...)
				if out := mustGet(t, rt, "a"); string(out.Output) != `"yes"` {
					t.Errorf("%s %s, %v", out.Status, out.Output, out.Failure)
				}
			})
		})
	}
}

// A sub-orchestration is identified by its id, its input and its caller: calls with the same ones are one, and
// everything else is rejected, in the same turn or later. No orchestration waits for itself.
func TestIdentityOfChildren(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64 // one case runs after the other
	child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
		ran.Add(1)
		ctx.Sleep(time.Hour)
		if n < 0 {
			return 0, Permanent(errors.New("below zero"))
		}
		return 10 * n, nil
	})
	between := NewOrchestrator("between", func(ctx *Context, id string) (int, error) { return child.Call(ctx, 1, WithID(id)).Await() })
	for _, test := range []struct {
		name string
		call func(ctx *Context) []*Future[int]
		want string // results and errors
		ran  bool   // the child had a turn
	}{
		{"the same call twice at the same time", func(ctx *Context) []*Future[int] {
			return []*Future[int]{child.Call(ctx, 1, WithID("x")), child.Call(ctx, 1, WithID("x")), child.Call(ctx, 2, WithID("y"))}
		}, "10 10 20", true},
		{"the same call twice, and it fails", func(ctx *Context) []*Future[int] {
			return []*Future[int]{child.Call(ctx, -1, WithID("x")), child.Call(ctx, -1, WithID("x"))}
		}, "below zero below zero", true},
		{"the same call again", func(ctx *Context) []*Future[int] {
			first := child.Call(ctx, 1, WithID("x"))
			_, _ = first.Await()
			return []*Future[int]{first, child.Call(ctx, 1, WithID("x"))}
		}, "10 10", true},
		{"another input at the same time", func(ctx *Context) []*Future[int] {
			return []*Future[int]{child.Call(ctx, 1, WithID("x")), child.Call(ctx, 2, WithID("x"))}
		}, "10 taken", true},
		{"another input later", func(ctx *Context) []*Future[int] {
			first := child.Call(ctx, 1, WithID("x"))
			_, _ = first.Await()
			return []*Future[int]{first, child.Call(ctx, 2, WithID("x"))}
		}, "10 taken", true},
		{"its own id", func(ctx *Context) []*Future[int] { return []*Future[int]{child.Call(ctx, 1, WithID("a"))} }, "taken", false},
		{"the id of a caller's caller", func(ctx *Context) []*Future[int] { return []*Future[int]{between.Call(ctx, "a")} }, "taken", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.forgetful = true
				ran.Store(0)
				caller := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
					var words []string
					for _, f := range test.call(ctx) {
						n, err := f.Await()
						failure := &Failure{}
						switch {
						case err == nil:
							words = append(words, fmt.Sprint(n))
						case errors.Is(err, ErrConflict) || errors.As(err, &failure) && strings.Contains(failure.Message, ErrConflict.Error()):
							words = append(words, "taken")
						default:
							words = append(words, failure.Message)
						}
					}
					return strings.Join(words, " "), nil
				})
				all := []AnyOrchestrator{caller, child, between}
				rt := w.signalling(t, nil, all, nil)
				began := time.Now()
				mustRun(t, rt, startOf("a", 0))
				for range 3 {
					w.deliverAll(t, 20, all...)
					time.Sleep(time.Hour)
				}
				w.deliverAll(t, 20, all...)
				out := mustGet(t, rt, "a")
				if string(out.Output) != fmt.Sprintf("%q", test.want) {
					t.Errorf("%s %s, want %q, %v", out.Status, out.Output, test.want, out.Failure)
				}
				if !test.ran && out.EndedAt.Sub(began) > time.Minute {
					t.Errorf("it was refused after %v", out.EndedAt.Sub(began))
				}
				if got := ran.Load(); got > 0 != test.ran {
					t.Errorf("the child had %d turns", got)
				}
			})
		})
	}
}
