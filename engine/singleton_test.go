package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/orchestrator"
)

const doorQueue = "door-queue"

// hall is the storage of a singleton engine, the door, which counts in the registry, under its lock.
type hall struct {
	*enginetest.World

	least int // seconds that the clock advances before a run ends
	fail  func(correlationID string) error
	waits bool // for the event "open", under the lock
}

type step struct {
	Job       string
	Execution int
}

func newHall(t *testing.T) *hall {
	t.Helper()
	h := &hall{least: 1}
	h.World = enginetest.New(t, enginetest.Config{Engines: func(s enginetest.Stores) []engine.Definition {
		return []engine.Definition{h.definition(registry.New(s.Tables, ""))}
	}})
	if _, err := h.Registry().Create(t.Context(), registry.Instance{InstanceID: "i1"}); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hall) definition(r *registry.Registry) engine.Definition {
	locks := engine.NewLockSteps("door", r)
	count := orchestrator.NewActivity("count", func(ctx context.Context, in step) (int, error) {
		n := 0
		info := orchestrator.Info(ctx)
		_, err := r.Update(ctx, "i1", in.Job, func(i *registry.Instance) error {
			var done []string
			if _, err := i.Field("done", &done); err != nil {
				return err
			}
			if n = len(done); slices.Contains(done, in.Job) {
				return nil
			}
			return i.SetField("done", append(done, in.Job))
		})
		if err == nil && h.fail != nil {
			err = h.fail(info.CorrelationID)
		}
		return n, err
	})
	return engine.Definition{Name: "door", Queue: doorQueue, Singleton: engine.PerInstance,
		Operations: []orchestrator.AnyActivity{count}, Activities: locks.Activities(),
		Orchestrator: engine.Orchestrate("door", func(ctx *orchestrator.Context, r engine.Request[struct{}]) (int, error) {
			n := 0
			err := engine.Locked(ctx, locks, r.InstanceID, time.Hour, func(ctx *orchestrator.Context) error {
				if err := ctx.Sleep(time.Duration(h.least) * time.Second); err != nil {
					return err
				}
				if h.waits {
					if _, err := orchestrator.Event[int](ctx, "open").Await(); err != nil {
						return err
					}
				}
				var err error
				n, err = count.Call(ctx, step{engine.JobID(ctx), ctx.Execution()}).Await()
				return err
			})
			return n, err
		})}
}

func (h *hall) send(correlationIDs ...string) {
	for _, id := range correlationIDs {
		h.Send(doorQueue, fmt.Sprintf(`{"correlationId":%q,"instanceId":"i1"}`, id))
	}
}

// document returns the current document of the registry.
func (h *hall) document(t *testing.T) (registry.Instance, []string) {
	t.Helper()
	i, err := h.Registry().Get(t.Context(), "i1")
	if err != nil {
		t.Fatal(err)
	}
	var done []string
	if _, err := i.Field("done", &done); err != nil {
		t.Fatal(err)
	}
	return i, done
}

// check checks that each run has succeeded once, has counted once, and that the lock is free.
func (h *hall) check(t *testing.T, correlationIDs ...string) {
	t.Helper()
	for _, id := range correlationIDs {
		runs := 0
		entries := h.History("door", id)
		for _, e := range entries {
			if e.RunStatus == engine.StatusSucceeded {
				runs++
			}
		}
		if runs != 1 {
			t.Errorf("%s has succeeded %d times: %+v", id, runs, entries)
		}
	}
	i, done := h.document(t)
	if len(done) != len(correlationIDs) || i.Lock.JobID != "" {
		t.Errorf("the registry saw %v; the lock: %+v", done, i.Lock)
	}
	if dead := h.DeadLetters("door"); len(dead) != 0 {
		t.Errorf("dead letters %+v", dead)
	}
}

// Two messages for one instance, and one process for each of three hosts: one runs, the other waits, and both succeed
// without using up an attempt.
func TestTwoRunsForOneInstance(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHall(t)
				h.least = 1 + round*4 // up to where runs park
				h.send("one", "two")
				var hosts sync.WaitGroup
				conflicts := 0
				var mu sync.Mutex
				for range 3 {
					p := h.Restart(nil)
					hosts.Go(func() {
						p.Run()
						mu.Lock()
						defer mu.Unlock()
						conflicts += p.Count(engine.Conflicting) + p.Count(engine.Elsewhere)
					})
				}
				hosts.Wait()
				h.check(t, "one", "two")
				if conflicts == 0 {
					t.Error("neither has waited for the other")
				}
			})
		})
	}
}

// Two messages for one instance, with every fault and a crash at every storage call: both succeed, and the lock is
// free in the end.
func TestFaultsWithTwoRunsForOneInstance(t *testing.T) {
	t.Parallel()
	failOnce := func() func(string) error {
		failed := map[string]bool{}
		return func(id string) error {
			if failed[id] {
				return nil
			}
			failed[id] = true
			return errors.New("stuck")
		}
	}
	for name, scenario := range map[string]struct {
		least int
		fails bool
	}{"inline": {1, false}, "parked": {100, false}, "each fails once": {1, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.FailEverywhere(t, nil, func(t *testing.T, plan *enginetest.Plan) {
				h := newHall(t)
				h.least = scenario.least
				if scenario.fails {
					h.fail = failOnce()
				}
				h.send("one", "two")
				h.Restart(plan)
				h.Run()
				h.check(t, "one", "two")
			})
		})
	}
}

// A message waits for a lock of any other holder without using up an attempt, and no longer than the lock lasts.
func TestAMessageWaitsForTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		p := h.Restart(nil)
		if _, err := h.Registry().Acquire(t.Context(), "i1", "somebody", 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		err := p.Conflict(t.Context(), engine.Message{Engine: "door", CorrelationID: "one", InstanceID: "i1"})
		if conflict, ok := errors.AsType[*engine.ConflictError](err); !ok || conflict.Holder != "somebody" || conflict.RetryAfter != 30*time.Second {
			t.Errorf("conflict: %+v", err)
		}
		began := time.Now()
		h.send("one")
		p.Run()
		if waited := time.Since(began); waited < 10*time.Minute || waited > 11*time.Minute {
			t.Errorf("it waited for %v", waited)
		}
		if n := p.Count(engine.Conflicting); n < 15 {
			t.Errorf("%d conflicts", n)
		}
		h.check(t, "one")
		if err := p.Conflict(t.Context(), engine.Message{Engine: "door", CorrelationID: "two", InstanceID: "i1"}); err != nil {
			t.Errorf("conflict with nobody: %v", err)
		}
	})
}

// The lock of a run that was stopped or purged is released.
func TestTheLockOfARunThatIsNoMore(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(context.Context, *enginetest.Process) error{
		"terminated": func(ctx context.Context, p *enginetest.Process) error {
			return p.Runtime.Terminate(ctx, "door-i1", "enough")
		},
		"canceled": func(ctx context.Context, p *enginetest.Process) error {
			return p.Runtime.Cancel(ctx, "door-i1", "enough")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHall(t)
				h.waits = true
				p := h.Restart(nil)
				h.send("one")
				h.DeliverTo(doorQueue, p.Handle)
				if i, _ := h.document(t); i.Lock.JobID != "door-i1/one" {
					t.Errorf("while it waits, the lock is %+v", i.Lock)
				}
				if err := stop(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				p.Run()
				if i, done := h.document(t); i.Lock.JobID != "" || len(done) != 0 {
					t.Errorf("afterwards: lock %+v, done %v", i.Lock, done)
				}
			})
		})
	}
	t.Run("purged", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			h := newHall(t)
			p := h.Restart(nil)
			if _, err := h.Registry().Acquire(t.Context(), "i1", "door-i1/purged", time.Hour); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			h.send("one")
			p.Run()
			if waited := time.Since(began); waited < time.Hour || waited > time.Hour+time.Minute {
				t.Errorf("it waited for %v", waited)
			}
			h.check(t, "one")
		})
	})
}

// A message for an unregistered instance is dead-lettered immediately: no attempt can help.
func TestAnInstanceThatNobodyKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		p := h.Restart(nil)
		d := engine.Delivery{Queue: doorQueue, ID: "m", Body: []byte(`{"correlationId":"c","instanceId":"nobody"}`), DequeueCount: 1, InsertedAt: time.Now()}
		if err := p.Handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		dead := h.DeadLetters("door")
		if len(dead) != 1 || dead[0].DequeueCount != 1 || !strings.Contains(dead[0].ErrorMessage, registry.ErrNotFound.Error()) {
			t.Errorf("%+v", dead)
		}
	})
}
