package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
)

// besideActivity calls a long activity and waits for an event at the same time.
func besideActivity(long *Activity[int, int], step *Activity[int, int]) *Orchestrator[int, []int] {
	return NewOrchestrator("test", func(ctx *Context, n int) ([]int, error) {
		work := long.Call(ctx, n)
		v, err := Event[int](ctx, "number").Await()
		if err != nil {
			return nil, err
		}
		return All(work, step.Call(ctx, v))
	})
}

// An event that another process delivers while a long activity runs here: both continue, and the activity runs once.
func TestAnEventElsewhereDoesNotDisturbAnActivity(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		long := NewActivity("long", func(ctx context.Context, n int) (int, error) {
			l.add("long")
			return n, pause(ctx, 10*time.Minute)
		})
		step := l.step("step")
		o := besideActivity(long, step)
		here := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{long, step})
		there := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{long, step})
		done := runInBackground(t.Context(), here, startOf("a", 1))
		time.Sleep(time.Minute)
		out, err := there.Deliver(t.Context(), eventSignal("a", "e", "number", "7"))
		if err != nil || out.Ended() || l.count("step(7)") != 1 {
			t.Errorf("there: %s %v, calls %v", out.Status, err, l.all())
		}
		r := <-done
		if r.err != nil || string(r.out.Output) != "[1,8]" || l.count("long") != 1 || l.count("step(7)") != 1 {
			t.Errorf("here: %s %v, calls %v", r.out.Output, r.err, l.all())
		}
		if here.Counts().Conflicts != 0 || there.Counts().Conflicts != 0 {
			t.Errorf("conflicts, though the activity's process looks for rounds of others: %+v %+v", here.Counts(), there.Counts())
		}
		w.replays(t, here)
	})
}

// An event that arrives here after another process has committed a round loses the race for the next one. It is
// applied then, regardless of activities running here.
func TestAnEventThatLosesARaceWaitsForNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		long := NewActivity("long", func(ctx context.Context, n int) (int, error) { return n, pause(ctx, 10*time.Minute) })
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			work := long.Call(ctx, n)
			for range 3 {
				if _, err := Event[int](ctx, "number").Await(); err != nil {
					return 0, err
				}
			}
			return work.Await()
		})
		here := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{long})
		there := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{long})
		done := runInBackground(t.Context(), here, startOf("a", 1))
		time.Sleep(time.Minute)
		noError(t, errorOf(there.Deliver(t.Context(), eventSignal("a", "e1", "number", "1"))))
		delivered := make(chan error, 1)
		go func() {
			_, err := here.Deliver(t.Context(), eventSignal("a", "e2", "number", "2"))
			delivered <- err
		}()
		time.Sleep(time.Second)
		in, err := there.Inspect(t.Context(), "a")
		if err != nil || in.LastSignal != "e2" || here.Counts().Conflicts != 1 {
			t.Errorf("the last signal is %s, after %d conflicts: %v", in.LastSignal, here.Counts().Conflicts, err)
		}
		if _, err := there.Deliver(t.Context(), eventSignal("a", "e3", "number", "3")); err != nil {
			t.Error(err)
		}
		if err, r := <-delivered, <-done; err != nil || r.err != nil || r.out.Status != Completed {
			t.Errorf("%v, %s %v", err, r.out.Status, r.err)
		}
	})
}

// A lost race for a round loses none of the pending results, regardless of the events that the winner has learned.
func TestARaceLostWithResultsInHand(t *testing.T) {
	t.Parallel()
	for _, rivals := range []int{1, 3} {
		t.Run(fmt.Sprint(rivals), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				long := NewActivity("long", func(_ context.Context, n int) (int, error) { l.add("long"); return n, nil })
				o := NewOrchestrator("test", func(ctx *Context, n int) ([]int, error) {
					work := long.Call(ctx, n)
					var out []int
					for range rivals {
						v, err := Event[int](ctx, "number").Await()
						if err != nil {
							return nil, err
						}
						out = append(out, v)
					}
					v, err := work.Await()
					return append(out, v), err
				})
				there := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{long})
				applies := 0
				here := w.intercepted(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
					if c.Operation == "Apply" && c.Target == "orchestrations" {
						if applies++; applies > 1 && applies <= rivals+1 {
							if _, err := there.Deliver(context.Background(), eventSignal("a", fmt.Sprint("e", applies), "number", fmt.Sprint(applies))); err != nil {
								t.Error(err)
							}
						}
					}
					return next(ctx)
				}, Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{long}, ScheduleQueue: signalQueue})
				out, err := here.Run(t.Context(), startOf("a", 1))
				if err != nil || out.Status != Completed || l.count("long") != 1 {
					t.Errorf("%s %v, calls %v", out.Status, err, l.all())
				}
				if n := here.Counts().Conflicts; n != rivals {
					t.Errorf("%d conflicts", n)
				}
				if n := w.learnedEvents(t, "a", activityCompleted); n != 1 {
					t.Errorf("%d results", n)
				}
				w.replays(t, here)
			})
		})
	}
}

// The loser of a race returns ErrElsewhere only while the rival works on something that would be lost with it.
func TestElsewhereOnlyWhileARivalWorks(t *testing.T) {
	t.Parallel()
	for _, working := range []bool{true, false} {
		t.Run(fmt.Sprint(working), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				first := l.step("first")
				slow := NewActivity("slow", func(ctx context.Context, n int) (int, error) { l.add("slow"); return n, pause(ctx, 10*time.Minute) })
				o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
					if _, err := first.Call(ctx, n).Await(); err != nil {
						return 0, err
					}
					if working {
						return slow.Call(ctx, n).Await()
					}
					return Event[int](ctx, "number").Await()
				})
				c := Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{first, slow}, ScheduleQueue: signalQueue}
				there := w.intercepted(t, (&faults.Plan{}).Intercept, c)
				var rival <-chan ran
				here := w.intercepted(t, atApply(2, func() {
					rival = runInBackground(t.Context(), there, startOf("a", 1))
					synctest.Wait()
				}), c)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				out, err := here.Run(ctx, startOf("a", 1))
				if working != errors.Is(err, ErrElsewhere) || !working && (err != nil || !out.Woken) {
					t.Errorf("%+v %v", out, err)
				}
				if r := <-rival; r.err != nil || working != r.out.Ended() {
					t.Errorf("the rival: %+v %v", r.out, r.err)
				}
				if working && l.count("slow") != 1 {
					t.Errorf("calls %v", l.all())
				}
			})
		})
	}
}

// Conflicts are bounded: a process that always loses stops, having changed nothing.
func TestConflictsAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			v, err := step.Call(ctx, n).Await()
			if err != nil {
				return 0, err
			}
			for range 100 {
				if v, err = Event[int](ctx, "number").Await(); err != nil {
					return 0, err
				}
			}
			return v, nil
		})
		there := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{step})
		n := 0
		here := w.intercepted(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Operation == "Apply" && c.Target == "orchestrations" && n < 50 {
				if n++; n > 1 {
					if _, err := there.Deliver(context.Background(), eventSignal("a", fmt.Sprint("e", n), "number", "1")); err != nil {
						t.Error(err)
					}
				}
			}
			return next(ctx)
		}, Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{step}, ScheduleQueue: signalQueue})
		_, err := here.Run(t.Context(), startOf("a", 1))
		if !errors.Is(err, ErrElsewhere) || here.Counts().Conflicts != conflictTries {
			t.Errorf("%v after %d conflicts", err, here.Counts().Conflicts)
		}
		n = 50 // the rival rests
		if out, err := here.Run(t.Context(), startOf("a", 1)); err != nil || !out.Woken {
			t.Errorf("%+v %v", out, err)
		}
		w.replays(t, here)
	})
}

// Another process commits an event while a result leads to a call here. Calls that the previous attempt has completed
// are not made again, although this process has to learn its events again.
func TestAnEventElsewhereDoesNotRepeatWhatIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		kept := l.step("kept")
		picky := NewActivity("picky", func(_ context.Context, n int) (int, error) {
			if l.add("picky") == 1 {
				return 0, errors.New("not yet")
			}
			return n, nil
		})
		activities := []AnyActivity{kept, picky}
		first := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			if _, err := kept.Call(ctx, n).Await(); err != nil {
				return 0, err
			}
			return picky.Call(ctx, n).Await()
		})}, activities)
		if out := mustRun(t, first, startOf("a", 1)); out.Status != Failed {
			t.Fatal(out.Status)
		}
		// The code of the next attempt makes the call that completed after the one that failed.
		next := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			n, err := picky.Call(ctx, n).Await()
			if err != nil {
				return 0, err
			}
			return kept.Call(ctx, n).Await()
		})
		there := w.signalling(t, nil, []AnyOrchestrator{next}, activities)
		here := w.intercepted(t, atApply(2, func() {
			if _, err := there.Deliver(t.Context(), eventSignal("a", "1", "noise", "1")); err != nil {
				t.Error(err)
			}
		}), Config{Orchestrators: []AnyOrchestrator{next}, Activities: activities})
		again := startOf("a", 1)
		again.Resume = true
		if out := runUntilRest(t, here, again); out.Status != Completed || string(out.Output) != "2" {
			t.Errorf("%s %s %v", out.Status, out.Output, out.Failure)
		}
		if l.count("kept(1)") != 1 || here.Counts().Conflicts == 0 {
			t.Errorf("it ran %d times, with %d conflicts", l.count("kept(1)"), here.Counts().Conflicts)
		}
	})
}
