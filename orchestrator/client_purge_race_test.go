package orchestrator

// A purge, and processes that were paused meanwhile.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/internal/faults"
)

// A process that was paused before a commit cannot restore an orchestration that was ended and purged meanwhile, at
// any stage of the purge.
func TestPurgeForceDeletePreventsAckRecreation(t *testing.T) {
	t.Parallel()
	for commit := 1; commit <= 3; commit++ {
		t.Run(fmt.Sprintf("commit %d", commit), func(t *testing.T) {
			t.Parallel()
			everyFault(t, func(t *testing.T, plan *faults.Plan) {
				if plan.Fault == faults.Slow {
					return // the paused process would time out
				}
				o := newOffice(t)
				step := o.ledger.step("step")
				o.orchestrators, o.activities = []AnyOrchestrator{sequence(step)}, []AnyActivity{step}
				reached, goOn := make(chan struct{}), make(chan struct{})
				slow := o.intercepted(t, atApply(commit, func() { close(reached); <-goOn }), Config{Orchestrators: o.orchestrators, Activities: o.activities})
				done := runInBackground(t.Context(), slow, startOf("a", 2))
				<-reached
				rt := o.open(t, nil)
				mustRun(t, rt, startOf("a", 2))
				purged := o.open(t, plan).Purge(t.Context(), "a") == nil // it may die
				_, err := rt.Get(t.Context(), "a")
				there := err == nil
				close(goOn)
				got := <-done
				switch {
				case there, commit == 1: // it reads the rows, or starts over: its message is older than the purge
					if got.err != nil || got.out.Status != Completed || got.out.Execution != 1 {
						t.Errorf("%+v", got)
					}
					o.onceEach(t, "a")
					if err := rt.Purge(t.Context(), "a"); err != nil {
						t.Error(err)
					}
				default:
					isError(t, "the paused process", got.err, ErrNotFound)
				}
				if err := rt.Purge(t.Context(), "a"); err != nil && !errors.Is(err, ErrNotFound) || purged && commit > 1 && err == nil {
					t.Errorf("purge again: %v", err)
				}
				o.gone(t, "a")
			})
		})
	}
}

// A purge between the transactions of others: concurrent purges, and a start of the same id, delete only the intended
// orchestration.
func TestPurgeRace(t *testing.T) {
	t.Parallel()
	for pausedAt := 1; pausedAt <= 4; pausedAt++ {
		synctest.Test(t, func(t *testing.T) {
			o := eventOffice(t)
			rt := o.open(t, nil)
			s := startOf("a", 1)
			s.Orchestrator = "bad"
			o.start(t, rt, s)
			reached, goOn := make(chan struct{}), make(chan struct{})
			slow := o.intercepted(t, atApply(pausedAt, func() { close(reached); <-goOn }), Config{Orchestrators: o.orchestrators, Activities: o.activities})
			done := make(chan error, 1)
			go func() { done <- slow.Purge(t.Context(), "a") }()
			select {
			case <-reached:
			case err := <-done: // it has no more transactions
				isError(t, "purge", err, nil)
				o.gone(t, "a")
				return
			}
			if err := rt.Purge(t.Context(), "a"); err != nil {
				t.Error(err)
			}
			out := o.start(t, rt, startOf("a", 2)) // again
			before := o.rows(t, "a")
			close(goOn)
			if err := <-done; err != nil && !errors.Is(err, ErrElsewhere) && !errors.Is(err, ErrActive) && !errors.Is(err, ErrNotFound) {
				t.Error(err)
			}
			if out.Status != Running || o.executions(t, "a") != 1 {
				t.Errorf("paused before transaction %d: %+v", pausedAt, out)
			}
			o.unchanged(t, "a", before)
		})
	}
}

// A client's operation that was paused with an old state does nothing to another orchestration that has the id by
// then.
func TestPurgeUnderAPausedOperation(t *testing.T) {
	t.Parallel()
	for name, operation := range map[string]func(context.Context, *Runtime) error{
		"restart": func(ctx context.Context, rt *Runtime) error { _, err := rt.Restart(ctx, "a", "r"); return err },
		"rewind":  func(ctx context.Context, rt *Runtime) error { _, err := rt.Rewind(ctx, "a", "r"); return err },
		"start": func(ctx context.Context, rt *Runtime) error {
			_, err := rt.Start(ctx, startRequest("a", 1, "r", ReuseEnded))
			return err
		},
		"purge": func(ctx context.Context, rt *Runtime) error { return rt.Purge(ctx, "a") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				o := eventOffice(t)
				rt := o.open(t, nil)
				s := startOf("a", 1)
				s.Orchestrator = "bad"
				o.start(t, rt, s)
				reached, goOn := make(chan struct{}), make(chan struct{})
				slow := o.intercepted(t, atApply(1, func() { close(reached); <-goOn }), Config{Orchestrators: o.orchestrators, Activities: o.activities})
				done := make(chan error, 1)
				go func() { done <- operation(t.Context(), slow) }()
				<-reached
				isError(t, "purge", rt.Purge(t.Context(), "a"), nil)
				o.start(t, rt, startOf("a", 2)) // again
				before := o.rows(t, "a")
				close(goOn)
				if err := <-done; !errors.Is(err, ErrActive) && !errors.Is(err, ErrElsewhere) {
					t.Error(err)
				}
				o.unchanged(t, "a", before)
				wants(t, "executions", o.executions(t, "a"), 1)
			})
		})
	}
}
