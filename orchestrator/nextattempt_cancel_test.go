package orchestrator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A canceled sleep has not passed: the code after it has no effect, also when the code ignores the cancellation, and
// the run ends as canceled.
func TestASleepThatIsCanceledEndsTheRun(t *testing.T) {
	t.Parallel()
	charge := func(l *ledger) *Activity[int, int] { return l.step("charge") }
	other := NewOrchestrator("other", func(*Context, int) (int, error) { return 1, nil })
	behind := map[string]func(*Context, *ledger) error{
		"returns the error and would charge": func(ctx *Context, l *ledger) error {
			if err := ctx.Sleep(24 * time.Hour); err != nil {
				return err
			}
			_, err := charge(l).Call(ctx, 1).Await()
			return err
		},
		"charges": func(ctx *Context, l *ledger) error {
			_ = ctx.Sleep(24 * time.Hour)
			_, err := charge(l).Call(ctx, 1).Await()
			return err
		},
		"asks a person": func(ctx *Context, _ *ledger) error {
			_ = ctx.Sleep(24 * time.Hour)
			_, err := AskPerson[answer](ctx, question()).Await()
			return err
		},
		"publishes": func(ctx *Context, _ *ledger) error {
			_ = ctx.Sleep(24 * time.Hour)
			return ctx.Publish(Publication{TenantID: "t", Type: "slept", Payload: []byte("1")})
		},
		"starts another": func(ctx *Context, _ *ledger) error {
			_ = ctx.Sleep(24 * time.Hour)
			_, err := other.Start(ctx, "b", 1)
			return err
		},
		"calls a child": func(ctx *Context, _ *ledger) error {
			_ = ctx.Sleep(24 * time.Hour)
			_, err := other.Call(ctx, 1).Await()
			return err
		},
		"sleeps on": func(ctx *Context, _ *ledger) error {
			_ = ctx.Sleep(24 * time.Hour)
			_, err := Timer(ctx, 24*time.Hour).Await()
			return err
		},
	}
	tests := map[string]func(*testing.T){}
	for name, run := range behind {
		tests["the code "+name] = func(t *testing.T) {
			w, l, p := newWorld(t), &ledger{}, &post{}
			o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) { return 0, run(ctx, l) })
			rt := w.publishing(t, nil, p, []AnyOrchestrator{o, other}, []AnyActivity{charge(l)})
			mustRun(t, rt, startOf("a", 1))
			w.attend(t, rt, time.Hour)
			noError(t, rt.Cancel(t.Context(), "a", "no need"))
			w.attend(t, rt, 10*time.Minute)
			wants(t, "it ends", stands(t, rt, "a"), "Canceled: the orchestration was canceled: no need")
			wants(t, "charged", l.count("charge(1)"), 0)
			wants(t, "published", len(p.events), 0)
			wants(t, "orchestrations", len(w.all(t, rt)), 1)
			if slices.ContainsFunc(mustGet(t, rt, "a").Calls, func(c Call) bool { return c.Kind == TaskCall }) {
				t.Error("a person was asked")
			}
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// A second cancellation changes nothing: the clean-up that the first one began runs once, whichever process gets the
// second.
func TestASecondCancelDoesNotRunTheCleanUpAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T){}
	for name, elsewhere := range map[string]bool{"in the same process": false, "in another process": true} {
		tests[name] = func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			cleanUp := NewActivity("clean up", func(context.Context, int) (int, error) {
				l.add("begun")
				time.Sleep(10 * time.Minute)
				l.add("done")
				return 1, nil
			})
			o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
				_, err := Event[int](ctx, "never").Await()
				if errors.Is(err, ErrCanceled) {
					if _, failed := cleanUp.Call(WithoutCancel(ctx), n).Await(); failed != nil {
						return 0, failed
					}
				}
				return 0, err
			})
			here := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{cleanUp})
			mustRun(t, here, startOf("a", 1))
			cancel := func(rt *Runtime) {
				if err := here.Cancel(t.Context(), "a", "no need"); err != nil {
					t.Error(err)
				}
				w.deliver(t.Context(), t, rt)
			}
			first, there := make(chan struct{}), here
			go func() {
				defer close(first)
				cancel(here)
			}()
			synctest.Wait()
			wants(t, "begun by the first", l.count("begun"), 1)
			if elsewhere {
				there = w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{cleanUp})
			}
			time.Sleep(time.Minute)
			cancel(there)
			<-first
			w.attend(t, here, 2*time.Hour)
			wants(t, "it ends", stands(t, here, "a"), "Canceled: the orchestration was canceled: no need")
			wants(t, "clean-ups", l.all(), map[string]int{"begun": 1, "done": 1})
			w.replays(t, here)
		}
	}
	inBubbles(t, tests)
}

// Suspend and resume apply in the order in which they were accepted, in any order of arrival.
func TestSuspendAndResumeApplyInTheOrderInWhichTheyWereAccepted(t *testing.T) {
	t.Parallel()
	type operation = func(context.Context, *Runtime) error
	suspend := func(ctx context.Context, rt *Runtime) error { return rt.Suspend(ctx, "a", "maintenance") }
	resume := func(ctx context.Context, rt *Runtime) error { return rt.Resume(ctx, "a", "") }
	orders := map[string]struct {
		operations []operation
		want       Status
	}{
		"suspend, resume":          {[]operation{suspend, resume}, Running},
		"suspend, resume, suspend": {[]operation{suspend, resume, suspend}, Suspended},
	}
	tests := map[string]func(*testing.T){}
	for name, order := range orders {
		tests[name] = func(t *testing.T) {
			w := newWorld(t)
			o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) { return Event[int](ctx, "number").Await() })
			rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
			mustRun(t, rt, startOf("a", 1))
			var sent []Signal
			for _, do := range order.operations {
				noError(t, do(t.Context(), rt))
				s, m, ok := w.receive(t, time.Hour)
				if !ok {
					t.Fatal("no signal")
				}
				noError(t, w.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt))
				sent = append(sent, s)
				time.Sleep(time.Second)
			}
			for _, s := range slices.Backward(sent) {
				noError(t, errorOf(rt.Deliver(t.Context(), s)))
			}
			wants(t, "in reverse, it is", shownStatus(t, rt, "a"), order.want)
			w.replays(t, rt)
		}
	}
	inBubbles(t, tests)
}

// A suspended run begins no attempt of an activity, and continues with the next one when it is resumed.
func TestASuspendedOrchestrationDoesNotRetry(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := NewActivity("step", func(context.Context, int) (int, error) {
			if l.add("step") < 5 {
				return 0, errors.New("not yet")
			}
			return 1, nil
		}, WithRetry(Retry{MaxAttempts: 10, FirstInterval: 2 * time.Minute, Coefficient: 1}))
		rt := w.signalling(t, nil, []AnyOrchestrator{sequence(step)}, []AnyActivity{step})
		mustRun(t, rt, startOf("a", 1))
		noError(t, rt.Suspend(t.Context(), "a", "maintenance"))
		w.deliverDue(t, rt)
		before := l.count("step")
		w.attend(t, rt, 3*time.Hour)
		wants(t, "it is", shownStatus(t, rt, "a"), Suspended)
		wants(t, "attempts while it is suspended", l.count("step")-before, 0)
		noError(t, rt.Resume(t.Context(), "a", ""))
		w.attend(t, rt, time.Hour)
		if got := stands(t, rt, "a"); !strings.HasPrefix(got, "Completed") || l.count("step") != 5 {
			t.Errorf("resumed: %s after %d attempts", got, l.count("step"))
		}
		w.replays(t, rt)
	})
}
