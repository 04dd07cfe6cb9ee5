package orchestrator

// The peers' checks of locks, by their names. Here no process holds an orchestration: every process that has its
// rounds may decide, and the first insert of the next round wins. So locks do not expire and are neither renewed nor
// abandoned. A process that was paused, for however long, is overtaken instead of expired. By other tests, or not at
// all:
//
//	instance_locking  exclusive_instance_lock               TestOneDriverInAProcess, TestTwoProcessesCannotBothCommit
//	                  invalid_lock_token_rejection          TestErrorHandling/invalid_lock_token_on_ack
//	                  completions_arriving_during_lock_blocked  they are not blocked, they join: TestASignalJoinsTheDriver
//	                  message_tagging_during_lock           no message is tagged; ack_only_affects_locked_messages is what it is for
//	                  multi_threaded_lock_contention        TestTwoProcessesCannotBothCommit, TestSimulation
//	lock_expiration   expires_after_timeout, abandon_releases_immediately  nothing is held: TestPainOrphanedLock
//	                  renewal_on_ack, orchestration renewal, worker renewal {success, invalid_token, after_expiration,
//	                  extends, after_ack}                   nothing is renewed; the visibility of a message is the host's
//	                  abandon with delay                    the host's: a Run or Deliver that fails leaves its message to it

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

func TestInstanceLocking(t *testing.T) {
	t.Parallel()
	t.Run("lock_token_uniqueness", func(t *testing.T) {
		t.Parallel()
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		tokens := map[string]string{}
		for _, id := range []string{"a", "b"} {
			mustRun(t, w.process(t, nil, sequence(step), step), startOf(id, 20))
			for _, e := range w.rows(t, id) {
				token := e.String(columnCommit)
				if e.Row == statusRow {
					continue
				}
				if other, taken := tokens[token]; token == "" || taken {
					t.Errorf("%s has the token %q of %s", e.Key, token, other)
				}
				tokens[token] = e.Key.String()
			}
		}
		if len(tokens) != 42 {
			t.Errorf("%d rounds", len(tokens))
		}
	})
	t.Run("concurrent_instance_fetching", func(t *testing.T) {
		t.Parallel()
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		processes := []*Runtime{w.process(t, nil, sequence(step), step), w.process(t, nil, sequence(step), step)}
		const orchestrations = 40
		var wg sync.WaitGroup
		for i := range orchestrations {
			wg.Go(func() {
				if out, err := processes[i%2].Run(t.Context(), startOf(fmt.Sprint("o", i), 3)); err != nil || out.Status != Completed {
					t.Errorf("%d: %s %v", i, out.Status, err)
				}
			})
		}
		wg.Wait()
		if l.count("step(0)") != orchestrations || l.count("step(2)") != orchestrations {
			t.Errorf("calls %v", l.all())
		}
	})
	// A process that hangs in storage blocks nothing but itself.
	t.Run("cross_instance_lock_isolation", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			reached, goOn := make(chan struct{}), make(chan struct{})
			rt := w.intercepted(t, atApply(2, func() { close(reached); <-goOn }), Config{Orchestrators: []AnyOrchestrator{sequence(step)}, Activities: []AnyActivity{step}})
			held := runInBackground(t.Context(), rt, startOf("a", 2))
			<-reached
			if out := mustRun(t, rt, startOf("b", 3)); out.Status != Completed {
				t.Errorf("%+v", out)
			}
			close(goOn)
			if got := <-held; got.err != nil || got.out.Status != Completed {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("ack_only_affects_locked_messages", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t)
			rt := w.signalling(t, nil, []AnyOrchestrator{numberLoop(2)}, nil)
			mustRun(t, rt, startOf("a", []int{}))
			raise(t, w, "a", 1, 0)
			raise(t, w, "a", 2, 0)
			w.deliver(t.Context(), t, rt)
			if n := w.waitingMessages(t); n != 1 || w.learnedEvents(t, "a", eventRaised) != 1 {
				t.Errorf("%d messages are left, %d are applied", n, w.learnedEvents(t, "a", eventRaised))
			}
			w.settle(t, rt)
			if out := mustGet(t, rt, "a"); string(out.Output) != "[1,2]" {
				t.Errorf("%s %s", out.Status, out.Output)
			}
		})
	})
	t.Run("multi_threaded_no_duplicate_processing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		const events, processes = 10, 4
		first := w.signalling(t, nil, []AnyOrchestrator{numberLoop(events)}, nil)
		mustRun(t, first, startOf("a", []int{}))
		var wg sync.WaitGroup
		for range processes {
			rt := w.signalling(t, nil, []AnyOrchestrator{numberLoop(events)}, nil)
			for n := range events {
				wg.Go(func() {
					err := ErrElsewhere
					for errors.Is(err, ErrElsewhere) {
						_, err = rt.Deliver(t.Context(), eventSignal("a", fmt.Sprint("event", n), "number", fmt.Sprint(n)))
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		out := mustGet(t, first, "a")
		if out.Status != Completed || out.Execution != events {
			t.Errorf("%s in execution %d", out.Status, out.Execution)
		}
		var got []int
		noError(t, json.Unmarshal(out.Output, &got))
		slices.Sort(got)
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
	t.Run("multi_threaded_lock_expiration_recovery", func(t *testing.T) {
		t.Parallel()
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		var wg sync.WaitGroup
		for i := range 8 { // all of them die, or are overtaken by one that does
			rt := w.process(t, &faults.Plan{At: i + 1, Fault: faults.CrashAfter}, sequence(step), step)
			wg.Go(func() { _, _ = rt.Run(t.Context(), startOf("a", 20)) })
		}
		wg.Wait()
		if out := mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 20)); string(out.Output) != "20" || out.Execution != 1 {
			t.Errorf("%+v", out)
		}
		if all := w.stored(t, "a"); len(all[0].rounds) != 21 {
			t.Errorf("%d rounds", len(all[0].rounds))
		}
	})
}

func TestLockExpiration(t *testing.T) {
	t.Parallel()
	// A step may take longer than any lease lasts: while no other process continues, its result is used.
	t.Run("no_renewal_needed", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t)
			long := NewActivity("long", func(_ context.Context, n int) (int, error) {
				time.Sleep(1000 * time.Hour)
				return n, nil
			})
			if out := mustRun(t, w.process(t, nil, sequence(long), long), startOf("a", 2)); out.Status != Completed || out.Rounds != 3 {
				t.Errorf("%+v", out)
			}
		})
	})
	// A result that arrives after another process has recorded one is dropped.
	t.Run("worker_ack_fails_after_lock_expiry", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			goOn := make(chan struct{})
			step := NewActivity("step", func(_ context.Context, n int) (int, error) {
				if l.add("step") == 1 {
					<-goOn
					return 100, nil
				}
				return n + 1, nil
			})
			slow := w.process(t, nil, sequence(step), step)
			done := runInBackground(t.Context(), slow, startOf("a", 2))
			time.Sleep(1000 * time.Hour)
			mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 2))
			before := w.rows(t, "a")
			close(goOn)
			// orchestration_lock_renewal_after_expiration: it recovers by reading the rounds that it missed.
			if got := <-done; got.err != nil || string(got.out.Output) != "2" || got.out.Rounds != 1 || l.count("step") != 3 {
				t.Errorf("%s, %d rounds are its own, %d runs, %v", got.out.Output, got.out.Rounds, l.count("step"), got.err)
			}
			w.unchanged(t, "a", before)
			w.onceEach(t, "a")
		})
	})
	t.Run("concurrent_attempts_respect_expiry", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			orchestrators, activities := []AnyOrchestrator{stepThenTimer(step, 100*time.Hour)}, []AnyActivity{step}
			first := w.signalling(t, nil, orchestrators, activities)
			mustRun(t, first, startOf("a", 1))
			time.Sleep(101 * time.Hour)
			wake, _, ok := w.receive(t, time.Hour)
			if !ok {
				t.Fatal("there is no signal for the timer")
			}
			const processes = 6
			results := make(chan ran, processes)
			var line sync.WaitGroup
			line.Add(processes)
			for range processes {
				rt := w.intercepted(t, atApply(1, func() { line.Done(); line.Wait() }), Config{Orchestrators: orchestrators, Activities: activities})
				go func() {
					out, err := rt.Deliver(t.Context(), wake)
					results <- ran{out, err}
				}()
			}
			won, fired := 0, 0
			for range processes {
				got := <-results
				switch {
				case got.err == nil && got.out.Status != Completed: // an acknowledging process has seen the end
					t.Errorf("%+v", got.out)
				case got.err == nil:
					won++
				case !errors.Is(got.err, ErrElsewhere):
					t.Error(got.err)
				}
				if got.out.Rounds > 0 {
					fired++
				}
			}
			if won == 0 || fired != 1 || l.count("step(2)") != 1 || w.learnedEvents(t, "a", timerFired) != 1 {
				t.Errorf("%d processes let the timer fire, %d have seen the end, calls %v", fired, won, l.all())
			}
			w.onceEach(t, "a")
			if got := w.status(t, "a"); got.String("RuntimeStatus") != "Completed" {
				t.Errorf("%v", got.Properties)
			}
		})
	})
	// A process that stopped in the middle leaves nothing that the next has to wait for, not even an unsent answer.
	t.Run("abandoned_commit", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			plan := &faults.Plan{Refuse: func(c faults.Call) bool { return c.Operation == "Apply" }}
			if _, err := w.process(t, plan, sequence(step), step).Run(t.Context(), startOf("a", 1)); !errors.Is(err, tables.ErrThrottled) {
				t.Errorf("%v", err)
			}
			begin := time.Now()
			if out := mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 1)); out.Status != Completed || time.Since(begin) != 0 {
				t.Errorf("%s after %v", out.Status, time.Since(begin))
			}
		})
	})
}
