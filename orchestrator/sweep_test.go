package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
)

// loseMessages deletes all messages of the signal queue, hidden ones included.
func (w *world) loseMessages(t *testing.T) {
	t.Helper()
	w.queues = queues.NewMemory()
	for _, queue := range []string{signalQueue, activityQueue} {
		noError(t, w.queues.CreateQueue(t.Context(), queue))
	}
}

func sleeper(l *ledger, d time.Duration) ([]AnyOrchestrator, []AnyActivity) {
	step := l.step("step")
	return []AnyOrchestrator{stepThenTimer(step, d)}, []AnyActivity{step}
}

// mustSweep sweeps and delivers its signals.
func (w *world) mustSweep(t *testing.T, rt *Runtime) int {
	t.Helper()
	n := must(rt.Sweep(t.Context(), 100))(t)
	for w.deliver(t.Context(), t, rt) {
	}
	return n
}

// A timer with a lost message fires once, after the orchestration was woken once; then the index is empty. This holds
// wherever the sweeper dies, and for any length of the timer.
func TestSweepWakesWhatIsOverdue(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{time.Hour, 20 * 24 * time.Hour} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			t.Parallel()
			everyFault(t, func(t *testing.T, plan *faults.Plan) {
				w, l := newWorld(t), &ledger{}
				orchestrators, activities := sleeper(l, d)
				if out := mustRun(t, w.signalling(t, nil, orchestrators, activities), startOf("a", 1)); !out.Woken {
					t.Fatalf("%+v", out)
				}
				w.loseMessages(t)
				sweeper := w.signalling(t, plan, orchestrators, activities)
				if n, err := sweeper.Sweep(t.Context(), 10); err == nil && n != 0 {
					t.Errorf("%d woken before the time", n)
				}
				time.Sleep(d + 6*time.Minute)
				_, _ = sweeper.Sweep(t.Context(), 10) // it may fail; the next one continues
				rt := w.signalling(t, nil, orchestrators, activities)
				for range 4 {
					time.Sleep(6 * time.Minute)
					w.mustSweep(t, rt)
				}
				if out := mustGet(t, rt, "a"); out.Status != Completed || w.learnedEvents(t, "a", timerFired) != 1 || l.count("step(2)") != 1 {
					t.Errorf("%s, calls %v", out.Status, l.all())
				}
				if rows := w.parked(t); len(rows) != 0 || w.waitingMessages(t) != 0 {
					t.Errorf("left: %q, %d messages", rows, w.waitingMessages(t))
				}
				w.replays(t, rt)
			})
		})
	}
}

// A timer's message is redelivered after a process has died over it, finds that its wait is over, and leads to the
// message for the next wait. If that one is lost, the sweeper wakes the orchestration, although the row of the
// previous wait is gone.
func TestSweepAfterAStaleTimer(t *testing.T) {
	t.Parallel()
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		w := newWorld(t)
		twice := NewOrchestrator("test", func(ctx *Context, _ int) (string, error) {
			return "awake", errors.Join(ctx.Sleep(time.Hour), ctx.Sleep(time.Hour))
		})
		orchestrators := []AnyOrchestrator{twice}
		mustRun(t, w.signalling(t, nil, orchestrators, nil), startOf("a", 1))
		time.Sleep(time.Hour + time.Second)
		first, _, ok := w.receive(t, budget)
		if !ok {
			t.Fatal("no timer")
		}
		_, _ = w.signalling(t, plan, orchestrators, nil).Deliver(t.Context(), first) // it may die over it
		rt := w.signalling(t, nil, orchestrators, nil)
		noError(t, errorOf(rt.Deliver(t.Context(), first)))
		mustRun(t, rt, startOf("b", 1)) // which removes obsolete rows from the index
		w.loseMessages(t)
		rt = w.signalling(t, nil, orchestrators, nil)
		w.attend(t, rt, 3*time.Hour)
		for _, id := range []string{"a", "b"} {
			if out := mustGet(t, rt, id); out.Status != Completed {
				t.Errorf("%s is %s", id, out.Status)
			}
		}
	})
}

// If no message is lost, the sweeper wakes nothing, and obsolete rows are deleted: a run that is canceled, fires in
// time, or is purged, leaves none behind.
func TestSweepOfWhatIsInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		orchestrators, activities := sleeper(l, 3*time.Hour)
		canceling := NewOrchestrator("canceling", func(ctx *Context, _ int) (int, error) {
			timer, e := Timer(ctx, 10*time.Hour), Event[int](ctx, "number")
			Any(ctx, timer, e)
			Cancel(ctx, timer)
			return Event[int](ctx, "number").Await()
		})
		rt := w.signalling(t, nil, append(orchestrators, canceling), activities)
		mustRun(t, rt, startOf("fires", 1))
		mustRun(t, rt, startOf("purged", 1))
		s := startOf("canceled", 1)
		s.Orchestrator = "canceling"
		mustRun(t, rt, s)
		if rows := w.parked(t); len(rows) != 3 {
			t.Fatalf("%q", rows)
		}
		raise(t, w, "canceled", 1, time.Hour)
		noError(t, rt.Terminate(t.Context(), "purged", ""))
		w.deliver(t.Context(), t, rt)
		noError(t, rt.Purge(t.Context(), "purged"))
		for range 24 * 6 {
			time.Sleep(10 * time.Minute)
			for w.deliver(t.Context(), t, rt) {
			}
			if n := w.mustSweep(t, rt); n != 0 {
				t.Errorf("%d woken", n)
			}
		}
		if out := mustGet(t, rt, "fires"); out.Status != Completed || rt.Counts().Woken != 0 {
			t.Errorf("%s, %d woken", out.Status, rt.Counts().Woken)
		}
		if rows := w.parked(t); len(rows) != 0 {
			t.Errorf("left: %q", rows)
		}
		if out := mustGet(t, rt, "canceled"); out.Ended() {
			t.Errorf("%+v", out)
		}
	})
}

// Parents and children that wait for weeks keep a row each, or less; the number of rows does not grow with time.
func TestTheIndexDoesNotGrow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) { return Event[int](ctx, "never").Await() })
		ticking := NewOrchestrator("ticking", func(ctx *Context, n int) (int, error) {
			_ = ctx.Sleep(45 * time.Minute)
			return 0, ContinueAsNew(n + 1)
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { return child.Call(ctx, n).Await() })
		rt := w.signalling(t, nil, []AnyOrchestrator{o, child, ticking}, nil)
		const parents = 5
		for i := range parents {
			mustRun(t, rt, startOf(fmt.Sprint("a", i), 1))
		}
		s := startOf("tick", 0)
		s.Orchestrator = "ticking"
		mustRun(t, rt, s)
		most := 0
		for range 5 * 24 * 4 {
			time.Sleep(15 * time.Minute)
			for w.deliver(t.Context(), t, rt) {
			}
			w.mustSweep(t, rt)
			most = max(most, len(w.parked(t)))
		}
		if most > parents+3 || w.waitingMessages(t) > 3 {
			t.Errorf("up to %d rows for %d that wait, %d messages", most, parents+1, w.waitingMessages(t))
		}
		if out := mustGet(t, rt, "a0"); len(w.stored(t, "a0")[0].rounds) > 2 || out.Ended() {
			t.Errorf("being looked after takes rounds: %+v", out)
		}
	})
}

// A lost end of a sub-orchestration is detected.
func TestSweepFindsALostEndOfAChild(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		orchestrators, activities := withWaitingChild(l)
		rt := w.signalling(t, nil, orchestrators, activities)
		mustRun(t, rt, startOf("a", 1))
		childID := mustGet(t, rt, "a").Calls[0].Child
		noError(t, errorOf(rt.Deliver(t.Context(), eventSignal(childID, "e", "number", "2"))))
		time.Sleep(61 * time.Minute)
		w.deliver(t.Context(), t, rt) // the child's timer
		if out := mustGet(t, rt, childID); out.Status != Completed {
			t.Fatalf("%+v", out)
		}
		w.loseMessages(t)
		rt = w.signalling(t, nil, orchestrators, activities)
		begin := time.Now()
		for !mustGet(t, rt, "a").Ended() && time.Since(begin) < 12*time.Hour {
			time.Sleep(5 * time.Minute)
			w.mustSweep(t, rt)
		}
		if out := mustGet(t, rt, "a"); string(out.Output) != `"3"` || time.Since(begin) > 2*time.Hour {
			t.Errorf("%s after %v", out.Output, time.Since(begin))
		}
	})
}

// A thousand overdue orchestrations are found in slices, each once.
func TestSweepOfAThousand(t *testing.T) {
	bulky(t)
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) { _ = ctx.Sleep(time.Hour); l.add("fired"); return n, nil })
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		const n = 1000
		for i := range n {
			mustRun(t, rt, startOf(fmt.Sprint("a", i), 1))
		}
		w.loseMessages(t)
		rt = w.signalling(t, nil, []AnyOrchestrator{o}, nil)
		time.Sleep(66 * time.Minute)
		woken := 0
		for range 10 {
			one := must(rt.Sweep(t.Context(), 300))(t)
			if woken += one; one > 300 {
				t.Errorf("%d woken at once", one)
			}
		}
		for w.deliver(t.Context(), t, rt) {
		}
		if woken != n || l.count("fired") != n || rt.Counts().Woken != n {
			t.Errorf("%d woken, %d fired", woken, l.count("fired"))
		}
	})
	w := newWorld(t)
	if _, err := w.process(t, nil, versioned("1")).Sweep(t.Context(), 1); !errors.Is(err, ErrNoSignals) {
		t.Errorf("without queues: %v", err)
	}
}

// Two concurrent sweepers do no harm.
func TestSweepersAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, l := newWorld(t), &ledger{}
		orchestrators, activities := sleeper(l, time.Hour)
		mustRun(t, w.signalling(t, nil, orchestrators, activities), startOf("a", 1))
		w.loseMessages(t)
		time.Sleep(66 * time.Minute)
		other := w.signalling(t, nil, orchestrators, activities)
		first := true
		slow := w.intercepted(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Operation == "Send" && first {
				first = false
				if _, err := other.Sweep(context.Background(), 10); err != nil {
					t.Error(err)
				}
			}
			return next(ctx)
		}, Config{Orchestrators: orchestrators, Activities: activities, ScheduleQueue: signalQueue})
		if _, err := slow.Sweep(t.Context(), 10); err != nil {
			t.Error(err)
		}
		w.settle(t, other)
		if out := mustGet(t, other, "a"); out.Status != Completed || l.count("step(2)") != 1 {
			t.Errorf("%s, calls %v", out.Status, l.all())
		}
	})
}
