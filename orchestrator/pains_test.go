package orchestrator

// The problems of users of other durable runtimes, by their symptoms. Each pain has a test here that is named after
// it, or a line:
//
//   - Lost updates between two nodes under load: TestTwoProcessesCannotBothCommit, TestSimulation; one paused node is
//     TestPainSplitBrain, one that continues after another TestPainSplitBrainOfTheOneThatGoesOn.
//   - Poison messages: a signal that cannot be read is ErrSignal for good (TestDecodeSignal); counting attempts and
//     dead letters are the engine package's.
//   - Purge that is slow, or never happens: TestPurge (many rows), TestPurgeInterrupted, TestPurgeAll,
//     TestPurgeAllInterrupted; signals that arrive after it: TestPurgeAndLateSignals. Stuck dequeues that only a
//     watchdog finds: Runtime.Sweep.
//   - Non-determinism and deployments: TestReplayThatDecidesDifferentlyStalls, TestPatched, TestExportAndReplay,
//     TestGolden of the engines.
//   - Fan-in that slows down with its size: TestFanOutIsAFewRounds, TestSequenceCostsOneTransactionAStep; the cold
//     side is TestPainLargeHistories.
//   - Terminate that is not recursive: TestTerminateTakesTheChildrenWithIt; that it reaches running activities is
//     TestPainTerminateDoesNotReachActivities. Cancel: TestCancelRuns, TestCancel, TestCancelInterrupted. Of one that
//     is pending: TestCancel (while it is pending), TestPainTerminateOfPending.
//   - Activities of a process that dies repeatedly: an attempt without an observed end is not counted in the rounds;
//     the host's dequeue count bounds it, and the engine package turns it into a dead letter. One that goes silent is
//     ended by WithHeartbeat.
//   - Partition counts that cannot be changed: cannot occur, partition counts do not exist. An orchestration is a
//     partition of its own.
//   - Custom status that is too large: TestCustomStatus.
//   - Orphaned entity locks: entities do not exist. The remains of a dead process are TestPainOrphanedLock; the lock
//     of an instance is the engine package's, with owner, expiry and release.
//   - Exhausted connections (SNAT): the storage packages' adapters share one client; nothing here opens a connection.
//   - Queries by name or tag that are slow, and empty pages: TestList.
//   - Deadlocks and duplicates of the SQL backend: cannot occur, an orchestration is written by inserts into one
//     partition, and no transaction waits for another.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
)

// The status says Completed exactly when the history does, wherever a process died.
func TestPainCompletedButRunning(t *testing.T) {
	t.Parallel()
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		_, _ = w.process(t, plan, sequence(step), step).Run(t.Context(), startOf("a", 2)) // it may die
		next := w.process(t, nil, sequence(step), step)
		if out, err := next.Get(t.Context(), "a"); err == nil {
			if got := w.status(t, "a").String("RuntimeStatus"); got != string(out.Status) {
				t.Errorf("the status is %s, the history %s", got, out.Status)
			}
		} else if !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		out := mustRun(t, next, startOf("a", 2))
		status := w.status(t, "a")
		if out.Status != Completed || status.String("RuntimeStatus") != "Completed" || !status.Time("CompletedAtUtc").Equal(out.EndedAt) {
			t.Errorf("%s, status %v", out.Status, status.Properties)
		}
	})
}

// Nothing outside happens before the round that decided it is committed: no activity, no sub-orchestration, no message.
func TestPainMessagesBeforeCommit(t *testing.T) {
	t.Parallel()
	t.Run("calls", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		check := func(id string, kind eventKind) error {
			for _, g := range w.stored(t, id) {
				for _, r := range g.rounds {
					if slices.ContainsFunc(r.Decided, func(e event) bool { return e.Kind == kind }) {
						return nil
					}
				}
			}
			return fmt.Errorf("%s of %s runs, and no round holds it", kind, id)
		}
		step := NewActivity("step", func(ctx context.Context, _ int) (int, error) {
			return 0, check(Info(ctx).Orchestration, activityScheduled)
		})
		child := NewOrchestrator("child", func(ctx *Context, n int) (int, error) {
			if err := check("a", childScheduled); err != nil {
				return 0, err
			}
			return step.Call(ctx, n).Await()
		})
		o := NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
			if _, err := step.Call(ctx, n).Await(); err != nil {
				return 0, err
			}
			return child.Call(ctx, n).Await()
		})
		if out := mustRun(t, w.runtime(t, nil, []AnyOrchestrator{o, child}, []AnyActivity{step}), startOf("a", 1)); out.Status != Completed {
			t.Errorf("%s %v", out.Status, out.Failure)
		}
	})
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		orchestrators, activities := []AnyOrchestrator{stepThenTimer(step, time.Hour)}, []AnyActivity{step}
		_, _ = w.signalling(t, plan, orchestrators, activities).Run(t.Context(), startOf("a", 1)) // it may die
		due := time.Time{}
		for _, g := range w.stored(t, "a") {
			for _, c := range summarize("a", g).Calls {
				if c.Kind == TimerCall {
					due = c.ScheduledAt.Add(time.Hour)
				}
			}
		}
		if n := w.waitingMessages(t); n > 0 && due.IsZero() {
			t.Errorf("%d messages for a timer that no round holds", n)
		}
		next := w.signalling(t, nil, orchestrators, activities)
		runUntilRest(t, next, startOf("a", 1))
		w.settle(t, next)
		if out := mustGet(t, next, "a"); out.Status != Completed || l.count("step(2)") != 1 {
			t.Errorf("%s, calls %v", out.Status, l.all())
		}
	})
}

// A start exists as a whole or not at all, and its message makes it run.
func TestPainStuckPending(t *testing.T) {
	t.Parallel()
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		orchestrators, activities := []AnyOrchestrator{stepThenTimer(step, time.Hour)}, []AnyActivity{step}
		_, _ = w.signalling(t, plan, orchestrators, activities).Run(t.Context(), startOf("a", 1)) // it may die
		next := w.signalling(t, nil, orchestrators, activities)
		switch out, err := next.Get(t.Context(), "a"); {
		case errors.Is(err, ErrNotFound):
			if n := len(w.rows(t, "a")); n != 0 || w.waitingMessages(t) != 0 || len(l.all()) != 0 {
				t.Errorf("of a start that is not there remain %d rows, %d messages and the calls %v", n, w.waitingMessages(t), l.all())
			}
		case err != nil || out.Status != Running || len(out.Calls) == 0:
			t.Errorf("%+v %v", out, err)
		}
		runUntilRest(t, next, startOf("a", 1))
		w.settle(t, next)
		if out := mustGet(t, next, "a"); out.Status != Completed {
			t.Errorf("%+v", out)
		}
	})
}

// A process that was paused, before any of its commits and for however long, applies the rounds that another committed
// meanwhile, and adds nothing to an ended run.
func TestPainSplitBrain(t *testing.T) {
	t.Parallel()
	for commit := 2; commit <= 3; commit++ {
		for _, paused := range []time.Duration{0, time.Second, 1000 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				slow, got := overtaken(t, newWorld(t), &ledger{}, commit, paused, nil)
				// After the timeout of a commit, it is abandoned before the request is sent.
				if errors.Is(got.err, context.DeadlineExceeded) != (paused > storeTimeout) || got.err != nil && paused < storeTimeout {
					t.Errorf("commit %d after %v: %v", commit, paused, got.err)
				}
				if got.out.Rounds != commit-1 && got.err == nil {
					t.Errorf("commit %d after %v: %d rounds are its own", commit, paused, got.out.Rounds)
				}
				if out, err := slow.Run(t.Context(), startOf("a", 2)); err != nil || out.Status != Completed {
					t.Errorf("commit %d after %v, again: %+v %v", commit, paused, out, err)
				}
			})
		}
	}
}

// The same when the other process died on its way: the paused one continues after the commits of the other.
func TestPainSplitBrainOfTheOneThatGoesOn(t *testing.T) {
	t.Parallel()
	const steps = 6
	for commit := 2; commit <= 3; commit++ {
		for ahead := 1; ahead <= 3; ahead++ {
			synctest.Test(t, func(t *testing.T) {
				w, l := newWorld(t), &ledger{}
				step := l.step("step")
				o := sequence(step)
				reached, goOn := make(chan struct{}), make(chan struct{})
				slow := w.intercepted(t, atApply(commit, func() { close(reached); <-goOn }), Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{step}})
				done := runInBackground(t.Context(), slow, startOf("a", steps))
				<-reached
				// The first calls of a takeover are an insert that fails, a read of its owner, and the query.
				other := w.process(t, &faults.Plan{At: 4 + ahead, Fault: faults.CrashBefore}, o, step)
				if _, err := other.Run(t.Context(), startOf("a", steps)); err == nil {
					t.Error("the other process does not die")
				}
				before := w.stored(t, "a")[0].rounds
				if len(before) < commit {
					t.Errorf("the other process left %d rounds", len(before))
				}
				close(goOn)
				got := <-done
				if errors.Is(got.err, ErrElsewhere) { // it cannot know that the other is dead, and its message is redelivered
					got.out, got.err = slow.Run(t.Context(), startOf("a", steps))
				}
				if got.err != nil || got.out.Status != Completed || string(got.out.Output) != fmt.Sprint(steps) {
					t.Errorf("%s %s %v", got.out.Status, got.out.Output, got.err)
				}
				w.onceEach(t, "a")
				all := w.stored(t, "a")
				if diff := cmp.Diff(before, all[0].rounds[:len(before)]); len(all) != 1 || len(all[0].rounds) != steps+1 || diff != "" {
					t.Errorf("%d executions; what the other committed (-before +after):\n%s", len(all), diff)
				}
				for call, n := range l.all() {
					if n > 2 {
						t.Errorf("%s ran %d times in two processes", call, n)
					}
				}
			})
		}
	}
}

// An activity that runs again has the same key, so that its outside effect happens once. A committed result is not
// requested again, however often the message is redelivered.
func TestPainDuplicateActivity(t *testing.T) {
	t.Parallel()
	everyFault(t, func(t *testing.T, plan *faults.Plan) {
		w, effects, runs := newWorld(t), &ledger{}, &ledger{}
		charge := NewActivity("charge", func(ctx context.Context, n int) (int, error) {
			info := Info(ctx)
			effects.add(info.IdempotencyKey())
			runs.add("charge")
			if info.Attempt != 1 {
				t.Errorf("a run that nobody saw the end of counts as attempt %d", info.Attempt)
			}
			return n, nil
		})
		_, _ = w.process(t, plan, sequence(charge), charge).Run(t.Context(), startOf("a", 1)) // it may die
		committed := w.learnedEvents(t, "a", activityCompleted)
		before := runs.count("charge")
		for range 5 {
			mustRun(t, w.process(t, nil, sequence(charge), charge), startOf("a", 1))
		}
		if again := runs.count("charge") - before; again != 1-committed {
			t.Errorf("it ran %d times more, %d results were committed", again, committed)
		}
		if len(effects.all()) != 1 {
			t.Errorf("one call had the keys %v", effects.all())
		}
	})
}

// Events that arrive while the orchestration continues as new are all read, once.
func TestPainEventsAroundContinueAsNew(t *testing.T) {
	t.Parallel()
	const events = 30
	want := []int{}
	for n := range events {
		want = append(want, n)
	}
	t.Run("one after the other, each twice", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t)
			rt := w.signalling(t, nil, []AnyOrchestrator{numberLoop(events)}, nil)
			mustRun(t, rt, startOf("a", []int{}))
			for n := range events {
				raise(t, w, "a", n, 0)
				raise(t, w, "a", n, 0)
			}
			w.settle(t, rt)
			if out := mustGet(t, rt, "a"); string(out.Output) != jsonOf(t, want) || out.Execution != events {
				t.Errorf("%s %s", out.Status, out.Output)
			}
		})
	})
	t.Run("while it is suspended", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t)
			rt := w.signalling(t, nil, []AnyOrchestrator{numberLoop(events)}, nil)
			mustRun(t, rt, startOf("a", []int{}))
			noError(t, rt.Suspend(t.Context(), "a", ""))
			for n := range events {
				raise(t, w, "a", n, time.Second)
				raise(t, w, "a", n, time.Minute) // behind the first execution
			}
			for time.Sleep(time.Second); w.deliver(t.Context(), t, rt); {
			}
			if n := w.learnedEvents(t, "a", eventRaised); n != events || mustGet(t, rt, "a").Execution != 1 {
				t.Errorf("%d events are kept", n)
			}
			noError(t, rt.Resume(t.Context(), "a", ""))
			w.settle(t, rt)
			if out := mustGet(t, rt, "a"); string(out.Output) != jsonOf(t, want) || out.Execution != events {
				t.Errorf("%s %s", out.Status, out.Output)
			}
		})
	})
	t.Run("all at once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		rt := w.signalling(t, nil, []AnyOrchestrator{NewOrchestrator("test", func(ctx *Context, got []int) ([]int, error) {
			out, err := numberLoop(events).fn(ctx, got)
			slices.Sort(out)
			return out, err
		})}, nil)
		mustRun(t, rt, startOf("a", []int{}))
		var wg sync.WaitGroup
		for n := range events {
			wg.Go(func() {
				if _, err := rt.Deliver(t.Context(), eventSignal("a", fmt.Sprint("event", n), "number", fmt.Sprint(n))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if out := mustGet(t, rt, "a"); string(out.Output) != jsonOf(t, want) {
			t.Errorf("%s %s", out.Status, out.Output)
		}
		w.stored(t, "a")
	})
}

// Characters that are invalid in XML, or no text at all, pass queue and table unchanged.
func TestPainBodyCorruption(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const odd = "\ufffe\uffff\x00\x01\x1f\u2028</QueueMessage>&<\U0001f680\\u0000\"e\u0301"
		w := newWorld(t)
		echo := NewActivity("echo", func(_ context.Context, s string) (string, error) { return s, nil })
		fail := NewActivity("fail", func(_ context.Context, s string) (string, error) { return "", errors.New(s) })
		o := NewOrchestrator("test", func(ctx *Context, in string) ([]string, error) {
			v, err := Event[string](ctx, odd).Await()
			if err != nil {
				return nil, err
			}
			out, err := echo.Call(ctx, v).Await()
			if err != nil {
				return nil, err
			}
			_, err = fail.Call(ctx, out).Await()
			failed, ok := errors.AsType[*ActivityError](err)
			if !ok {
				return nil, err
			}
			return []string{in, v, out, failed.Failure.Message}, ctx.SetStatus(out)
		})
		rt := w.signalling(t, nil, []AnyOrchestrator{o}, []AnyActivity{echo, fail})
		mustRun(t, rt, startOf("a", odd))
		noError(t, rt.Raise(t.Context(), "a", odd, odd, ""))
		w.settle(t, rt)
		if out := mustGet(t, rt, "a"); string(out.Output) != jsonOf(t, []string{odd, odd, odd, odd}) {
			t.Errorf("%s %s %v", out.Status, out.Output, out.Failure)
		}
		if got := w.status(t, "a").String("CustomStatus"); got != jsonOf(t, odd) {
			t.Errorf("custom status %q", got)
		}
	})
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text := must(marshal(v))(t)
	return string(text)
}
