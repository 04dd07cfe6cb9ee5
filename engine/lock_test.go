package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
	"github.com/vibedata/roundhouse/tables"
)

// ownJob is the holder name of the test's orchestration.
const ownJob = "test/test"

// underLock returns an orchestration that works under the lock, with a new registry for every run.
func underLock(t *testing.T, prepare func(ctx context.Context, r *registry.Registry), steps []orchestratortest.Step,
	do func(ctx *orchestrator.Context, look *orchestrator.Activity[int, string]) error, free bool) orchestratortest.Scenario[int, string] {
	t.Helper()
	r := registry.New(tables.NewMemory(), "")
	if err := r.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Create(t.Context(), registry.Instance{InstanceID: "i1"}); err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(t.Context(), r)
	}
	locks := engine.NewLockSteps("door", r)
	look := orchestrator.NewActivity("look", func(ctx context.Context, _ int) (string, error) {
		i, err := r.Get(ctx, "i1")
		if !i.Lock.Held(time.Now()) {
			return "", err
		}
		return i.Lock.JobID, err
	})
	steal := orchestrator.NewActivity("steal", func(ctx context.Context, _ int) (int, error) {
		if err := r.Release(ctx, "i1", ownJob); err != nil {
			return 0, err
		}
		_, err := r.Acquire(ctx, "i1", "thief", time.Hour)
		return 0, err
	})
	o := orchestrator.NewOrchestrator("test", func(ctx *orchestrator.Context, _ int) (string, error) {
		held := ""
		err := engine.Locked(ctx, locks, "i1", 6*time.Minute, func(ctx *orchestrator.Context) error {
			var err error
			if held, err = look.Call(ctx, 1).Await(); err != nil {
				return err
			}
			return do(ctx, look)
		})
		return held, err
	})
	return orchestratortest.Scenario[int, string]{Orchestrator: o, Steps: steps,
		Activities: append(locks.Activities(), look, steal),
		Check: func(t *testing.T, _ orchestratortest.Result[string]) {
			i, err := r.Get(t.Context(), "i1")
			if err != nil || (i.Lock.JobID == "") != free {
				t.Errorf("the lock afterwards: %+v, %v", i.Lock, err)
			}
		}}
}

// For any end of the work and a crash at any point, the lock is held during the work and released after it.
func TestLocked(t *testing.T) {
	t.Parallel()
	steal := orchestrator.NewActivity("steal", func(context.Context, int) (int, error) { return 0, nil }) // the name counts
	held := func(ctx *orchestrator.Context, look *orchestrator.Activity[int, string]) error {
		holder, err := look.Call(ctx, 2).Await()
		if err == nil && holder != ownJob {
			err = errors.New("the lock is held by " + holder)
		}
		return err
	}
	taken := func(ctx context.Context, r *registry.Registry) {
		if _, err := r.Acquire(ctx, "i1", "somebody", 20*time.Minute); err != nil {
			t.Error(err)
		}
	}
	type work = func(ctx *orchestrator.Context, look *orchestrator.Activity[int, string]) error
	for name, c := range map[string]struct {
		prepare func(context.Context, *registry.Registry)
		steps   []orchestratortest.Step
		do      work
		want    string // of the error, "" for none
		takes   time.Duration
		stolen  bool
	}{
		"succeeds": {do: held},
		"takes longer than the lock lasts": {takes: 10 * time.Minute, do: func(ctx *orchestrator.Context, look *orchestrator.Activity[int, string]) error {
			if err := ctx.Sleep(10 * time.Minute); err != nil {
				return err
			}
			return held(ctx, look)
		}},
		"fails":  {want: "no", do: func(*orchestrator.Context, *orchestrator.Activity[int, string]) error { return errors.New("no") }},
		"panics": {want: "panic: oh", do: func(*orchestrator.Context, *orchestrator.Activity[int, string]) error { panic("oh") }},
		"is canceled, and cleans up for longer than the lock lasts": {want: "canceled", takes: 11 * time.Minute,
			steps: []orchestratortest.Step{{At: time.Minute, Command: "cancel", Reason: "enough"}},
			do: func(ctx *orchestrator.Context, look *orchestrator.Activity[int, string]) error {
				if _, err := orchestrator.Timer(ctx, 24*time.Hour).Await(); err == nil {
					return errors.New("it was not canceled")
				}
				ctx = orchestrator.WithoutCancel(ctx)
				if err := ctx.Sleep(10 * time.Minute); err != nil {
					return err
				}
				if err := held(ctx, look); err != nil {
					panic(err)
				}
				return orchestrator.ErrCanceled
			}},
		"waits for another": {prepare: taken, do: held, takes: 20 * time.Minute},
		"is canceled while it waits": {prepare: taken, stolen: true, want: "canceled", takes: time.Minute, do: held,
			steps: []orchestratortest.Step{{At: time.Minute, Command: "cancel"}}},
		"loses the lock": {stolen: true, want: "the registry lock was lost", do: func(ctx *orchestrator.Context, _ *orchestrator.Activity[int, string]) error {
			if _, err := steal.Call(ctx, 1).Await(); err != nil {
				return err
			}
			_, err := orchestrator.Timer(ctx, time.Hour).Await()
			return err
		}, takes: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario := func(t *testing.T) orchestratortest.Scenario[int, string] {
				t.Helper()
				s := underLock(t, c.prepare, c.steps, c.do, !c.stolen)
				check := s.Check
				s.Check = func(t *testing.T, r orchestratortest.Result[string]) {
					t.Helper()
					check(t, r)
					if (r.Err == nil) != (c.want == "") || (r.Err != nil && !strings.Contains(r.Err.Error(), c.want)) {
						t.Errorf("error: %v, want %q", r.Err, c.want)
					}
					if r.Err == nil && r.Output != ownJob {
						t.Errorf("the lock was held by %q", r.Output)
					}
					if late := r.Elapsed - c.takes; late < 0 || late > time.Minute {
						t.Errorf("it took %v, not %v", r.Elapsed, c.takes)
					}
				}
				return s
			}
			orchestratortest.CrashEverywhere(t, scenario)
		})
	}
}
