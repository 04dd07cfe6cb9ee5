package orchestrator

// The peers' checks of a commit, by their names. Locks are not taken, renewed or released here: the insert of a round
// is the lock. Checks of a lock token apply to the Commit column, and checks of an expired lock to a process that was
// overtaken. By other tests, or not at all:
//
//	atomicity       lock_released_only_on_successful_ack   nothing is held; TestPainOrphanedLock and failure_rollback show it
//	error_handling  corrupted_serialization_data           TestDamagedRoundsStall has every kind of damage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

func TestAtomicity(t *testing.T) {
	t.Parallel()
	t.Run("failure_rollback", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l, closed := newWorld(t), &ledger{}, false
			step := l.step("step")
			plan := &faults.Plan{Refuse: func(c faults.Call) bool { return closed && c.Operation == "Apply" }}
			rt := w.signalling(t, plan, []AnyOrchestrator{stepThenEvent(step)}, []AnyActivity{step})
			mustRun(t, rt, startOf("a", 1))
			before := w.rows(t, "a")
			closed = true
			signal := eventSignal("a", "1", "number", "7")
			if _, err := rt.Deliver(t.Context(), signal); !errors.Is(err, tables.ErrThrottled) {
				t.Errorf("%v", err)
			}
			w.unchanged(t, "a", before)
			if w.waitingMessages(t) != 0 || l.count("step(7)") != 0 {
				t.Errorf("a round that was not committed sent %d messages and made the calls %v", w.waitingMessages(t), l.all())
			}
			closed = false
			if out, err := rt.Deliver(t.Context(), signal); err != nil || string(out.Output) != "8" {
				t.Errorf("afterwards: %+v %v", out, err)
			}
		})
	})
	t.Run("multi_operation_atomic_ack", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			rounds := 0
			look := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
				err := next(ctx)
				if all := w.stored(t, "a"); c.Operation == "Apply" { // stored holds rounds and status against each other
					if rounds++; len(all[0].rounds) != rounds {
						t.Errorf("commit %d leaves %d rounds", rounds, len(all[0].rounds))
					}
				}
				return err
			}
			rt := w.intercepted(t, look, Config{Orchestrators: []AnyOrchestrator{stepThenTimer(step, time.Second)}, Activities: []AnyActivity{step}})
			if out := mustRun(t, rt, startOf("a", 1)); out.Status != Completed || rounds != 4 {
				t.Errorf("%s after %d rounds", out.Status, rounds)
			}
		})
	})
	t.Run("concurrent_ack_prevention", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			orchestrators, activities := []AnyOrchestrator{stepThenEvent(step)}, []AnyActivity{step}
			mustRun(t, w.signalling(t, nil, orchestrators, activities), startOf("a", 1))
			const processes = 5
			var line sync.WaitGroup
			line.Add(processes)
			results := make(chan error, processes)
			var runtimes []*Runtime
			for i := range processes {
				rt := w.intercepted(t, atApply(1, func() { line.Done(); line.Wait() }), Config{Orchestrators: orchestrators, Activities: activities})
				runtimes = append(runtimes, rt)
				go func() {
					_, err := rt.Deliver(t.Context(), eventSignal("a", fmt.Sprint("event", i), "number", "7"))
					results <- err
				}()
			}
			acknowledged, stale, conflicts := 0, 0, 0
			for range processes {
				if err := <-results; err == nil {
					acknowledged++
				} else if !errors.Is(err, ErrElsewhere) {
					t.Error(err)
				}
			}
			for _, rt := range runtimes {
				stale += rt.Counts().Stale
				conflicts += rt.Counts().Conflicts
			}
			// One of them has the round. The contents of the others are in later rounds, came after the end, or are
			// redelivered.
			n := w.learnedEvents(t, "a", eventRaised)
			if acknowledged == 0 || n == 0 || acknowledged > n+stale || conflicts < processes-1 || l.count("step(7)") != 1 {
				t.Errorf("%d of %d events are acknowledged, %d are in rounds, %d stale; %d conflicts, calls %v", acknowledged, processes, n, stale, conflicts, l.all())
			}
			w.onceEach(t, "a")
		})
	})
}

func TestErrorHandling(t *testing.T) {
	t.Parallel()
	// The answer to a commit is lost, and the existing row has another's token.
	t.Run("invalid_lock_token_on_ack", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w, l := newWorld(t), &ledger{}
			step := l.step("step")
			var before []tables.Entity
			applied := 0
			lose := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
				if c.Operation == "Apply" {
					if applied++; applied == 2 {
						mustRun(t, w.process(t, nil, sequence(step), step), startOf("a", 2))
						before = w.rows(t, "a")
						return tables.ErrOutcomeUnknown
					}
				}
				return next(ctx)
			}
			rt := w.intercepted(t, lose, Config{Orchestrators: []AnyOrchestrator{sequence(step)}, Activities: []AnyActivity{step}})
			if out, err := rt.Run(t.Context(), startOf("a", 2)); err != nil || string(out.Output) != "2" || out.Rounds != 1 {
				t.Errorf("%s, %d rounds are its own, %v", out.Output, out.Rounds, err)
			}
			w.unchanged(t, "a", before)
			w.onceEach(t, "a")
		})
	})
	t.Run("duplicate_event_id_rejection", func(t *testing.T) {
		t.Parallel()
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		rt := w.signalling(t, nil, []AnyOrchestrator{numberLoop(2)}, []AnyActivity{step})
		mustRun(t, rt, startOf("a", []int{}))
		for _, data := range []string{"1", "2"} { // the second has the id of the first
			if _, err := rt.Deliver(t.Context(), eventSignal("a", "same", "number", data)); err != nil {
				t.Error(err)
			}
		}
		if out := mustGet(t, rt, "a"); out.Status != Running || w.learnedEvents(t, "a", eventRaised) != 1 {
			t.Errorf("%s, %d events", out.Status, w.learnedEvents(t, "a", eventRaised))
		}
		if out, err := rt.Deliver(t.Context(), eventSignal("a", "another", "number", "3")); err != nil || string(out.Output) != "[1,3]" {
			t.Errorf("%s %v", out.Output, err)
		}
	})
	// A missing status row is damage, as a torn purge would leave it: nothing is written until it is back.
	t.Run("missing_instance_metadata", func(t *testing.T) {
		t.Parallel()
		w, l := newWorld(t), &ledger{}
		step := l.step("step")
		rt := w.signalling(t, nil, []AnyOrchestrator{stepThenEvent(step)}, []AnyActivity{step})
		mustRun(t, rt, startOf("a", 1))
		status := w.status(t, "a")
		w.apply(t, tables.Delete(status.Key, ""))
		before := w.rows(t, "a")
		signal := eventSignal("a", "1", "number", "7")
		_, byGet := rt.Get(t.Context(), "a")
		_, byRun := rt.Run(t.Context(), startOf("a", 1))
		_, bySignal := rt.Deliver(t.Context(), signal)
		_, byStart := rt.Start(t.Context(), startOf("a", 1))
		for _, err := range []error{byGet, byRun, bySignal, byStart, rt.Purge(t.Context(), "a")} {
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "no status row") {
				t.Errorf("%v", err)
			}
		}
		w.unchanged(t, "a", before)
		w.apply(t, tables.Insert(status))
		if out, err := rt.Deliver(t.Context(), eventSignal("a", "1", "number", "7")); err != nil || string(out.Output) != "8" {
			t.Errorf("%+v %v", out, err)
		}
		w.stored(t, "a")
		if got := w.status(t, "a").String("RuntimeStatus"); got != "Completed" {
			t.Errorf("status %s", got)
		}
	})
	t.Run("lock_expiration_during_ack", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			if _, got := overtaken(t, newWorld(t), &ledger{}, 2, storeTimeout-time.Second, nil); got.err != nil {
				t.Errorf("%v", got.err)
			}
		})
	})
}
