package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
)

// A detached orchestration begins when the round that decided it is committed, regardless of faults, and whether the
// round also ends its starter, continues it as new, or is followed by one of another process.
func TestDetachedStartsAreNotLost(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", spillFrom+1)
	endings := map[string]func(ctx *Context, n int) (string, error){
		"completes at once":    func(*Context, int) (string, error) { return "ok", nil },
		"waits for an event":   func(ctx *Context, _ int) (string, error) { return Event[string](ctx, "go").Await() },
		"continues as new":     func(_ *Context, n int) (string, error) { return map[bool]string{true: "ok"}[n > 1], again2(n) },
		"waits for long times": func(ctx *Context, _ int) (string, error) { _ = ctx.Sleep(time.Hour); return "ok", nil },
	}
	for name, ending := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := flow{output: `"ok"`, make: func(l *ledger) ([]AnyOrchestrator, []AnyActivity) {
				step := l.step("step")
				other := NewOrchestrator("other", func(ctx *Context, in string) (int, error) {
					_ = ctx.Sleep(2 * time.Hour) // it continues when its starter has ended
					return step.Call(ctx, len(in)).Await()
				})
				o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
					if _, err := other.Start(ctx, fmt.Sprint("named ", n), big); err != nil {
						return "", err
					}
					id, err := other.Start(ctx, "", "small")
					if err != nil || !strings.HasPrefix(id, "a:") {
						return "", fmt.Errorf("id %q: %w", id, err)
					}
					return ending(ctx, n)
				})
				return []AnyOrchestrator{o, other}, []AnyActivity{step}
			}}
			if strings.Contains(name, "event") {
				f.steps = []outside{raising(0, "a", "go", "ok")}
			}
			f.check = func(t *testing.T, w *world, rt *Runtime, l *ledger) {
				want := 3
				if strings.Contains(name, "new") {
					want = 5
				}
				all := w.all(t, rt)
				for _, s := range all {
					if s.Status != Completed || s.Parent != "" || s.CorrelationID != "corr" {
						t.Errorf("%+v", s)
					}
				}
				if len(all) != want {
					t.Errorf("%d orchestrations, want %d", len(all), want)
				}
				if err := rt.Purge(t.Context(), "a"); err != nil || len(w.all(t, rt)) != want-1 {
					t.Errorf("purge of the starter left %d: %v", len(w.all(t, rt)), err)
				}
			}
			f.runs(t, faults.CrashAfter)
		})
	}
}

func again2(n int) error {
	if n > 1 {
		return nil
	}
	return ContinueAsNew(n + 1)
}

// An event that another process delivers does not hide a decided start that was not carried out.
func TestAnEventDoesNotHideADetachedStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		other := NewOrchestrator("other", func(*Context, int) (int, error) { return 1, nil })
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			if _, err := other.Start(ctx, "b", n); err != nil {
				return 0, err
			}
			return Event[int](ctx, "number").Await()
		})
		code := []AnyOrchestrator{o, other}
		dead := w.signalling(t, &faults.Plan{At: 1, Fault: faults.CrashAfter}, code, nil)
		if _, err := dead.Run(t.Context(), startOf("a", 1)); !errors.Is(err, faults.ErrCrashed) {
			t.Fatal(err)
		}
		rt := w.signalling(t, nil, code, nil)
		raise(t, w, "a", 7, 0)
		w.settle(t, rt)
		if out := mustRun(t, rt, startOf("a", 1)); string(out.Output) != "7" {
			t.Errorf("%+v", out)
		}
		w.settle(t, rt)
		if out := mustGet(t, rt, "b"); out.Status != Completed {
			t.Errorf("%+v", out)
		}
	})
}

// A taken id is left alone, a rewind of the starter starts nothing again, and an invalid id is an error of the call
// and not a stall.
func TestDetachedIDs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		other := NewOrchestrator("other", func(ctx *Context, n int) (int, error) { l.add(ctx.ID()); return n, nil })
		once := NewActivity("once", func(context.Context, int) (int, error) {
			if l.add("once") == 1 {
				return 0, errors.New("boom")
			}
			return 1, nil
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) {
			for _, id := range []string{"taken", "free", ""} {
				if _, err := other.Start(ctx, id, n); err != nil {
					return "", err
				}
			}
			_, long := other.Start(ctx, strings.Repeat("x", 401), n)
			_, text := other.Start(ctx, "\xff", n)
			_, input := NewOrchestrator("f", func(*Context, func()) (int, error) { return 0, nil }).Start(ctx, "f", nil)
			if !IsPermanent(input) {
				return "", fmt.Errorf("input: %w", input)
			}
			if _, err := once.Call(ctx, n).Await(); err != nil {
				return "", err
			}
			return fmt.Sprint(IsPermanent(long), IsPermanent(text)), nil
		})
		nothing := NewOrchestrator("f", func(*Context, any) (int, error) { return 0, nil })
		rt := w.signalling(t, nil, []AnyOrchestrator{o, other, nothing}, []AnyActivity{once})
		s := startOf("taken", 5)
		s.Orchestrator, s.CorrelationID = "other", "somebody else's"
		noError(t, errorOf(rt.Start(t.Context(), s)))
		w.settle(t, rt)
		if out := mustRun(t, rt, startOf("a", 1)); out.Status != Failed {
			t.Fatalf("%+v", out)
		}
		w.settle(t, rt)
		noError(t, errorOf(rt.Rewind(t.Context(), "a", "again")))
		w.settle(t, rt)
		if out := mustGet(t, rt, "a"); string(out.Output) != `"true true"` || out.Execution != 2 {
			t.Errorf("%+v", out)
		}
		if out := mustGet(t, rt, "taken"); out.CorrelationID != "somebody else's" || out.Execution != 1 {
			t.Errorf("%+v", out)
		}
		if all := w.all(t, rt); len(all) != 4 {
			t.Errorf("%d orchestrations", len(all))
		}
		if l.count("taken") != 1 || l.count("free") != 1 {
			t.Errorf("turns: %v", l.all())
		}
		w.replays(t, rt)
	})
}

// An uncommitted decision starts nothing.
func TestADetachedStartNeedsItsRound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		other := NewOrchestrator("other", func(*Context, int) (int, error) { return 1, nil })
		o := NewOrchestrator("test", func(ctx *Context, n int) (string, error) { return other.Start(ctx, "b", n) })
		rt := w.signalling(t, &faults.Plan{At: 1, Fault: faults.CrashBefore}, []AnyOrchestrator{o, other}, nil)
		if _, err := rt.Run(t.Context(), startOf("a", 1)); !errors.Is(err, faults.ErrCrashed) {
			t.Fatal(err)
		}
		if all := w.all(t, w.signalling(t, nil, []AnyOrchestrator{o, other}, nil)); len(all) != 0 || w.waitingMessages(t) != 0 {
			t.Errorf("%+v", all)
		}
	})
}
