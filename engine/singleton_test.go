package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const doorQueue = "door-queue"

// hall is the storage of a singleton engine, the door, which counts in the registry, under its lock.
type hall struct {
	tables *tables.Memory
	blobs  *blobs.Memory
	queues *queues.Memory

	least int // how far the clock has to go before a run ends, in seconds
	fail  func(correlationID string) error
	waits bool // for the event "open", under the lock
}

// hallProcess is one process of the hall.
type hallProcess struct {
	pipeline *engine.Pipeline
	runtime  *orchestrator.Runtime
	registry *registry.Registry
}

type step struct {
	Job       string
	Execution int
}

func newHall(t *testing.T) *hall {
	t.Helper()
	h := &hall{tables: tables.NewMemory(), blobs: blobs.NewMemory(), queues: queues.NewMemory(), least: 1}
	p := h.process(t, nil)
	if err := errors.Join(p.pipeline.Prepare(t.Context()), p.runtime.Prepare(t.Context()), p.registry.CreateTable(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := p.registry.Create(t.Context(), registry.Instance{InstanceID: "i1"}); err != nil {
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

func (h *hall) process(t *testing.T, plan *faults.Plan) hallProcess {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	store, messages := faults.Tables(h.tables, plan.Intercept), faults.Queues(h.queues, plan.Intercept)
	p := hallProcess{registry: registry.New(store, "")}
	d := h.definition(p.registry)
	var err error
	p.runtime, err = orchestrator.New(orchestrator.Config{Tables: store, Blobs: faults.Blobs(h.blobs, plan.Intercept), Queues: messages, Log: log,
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(d.Operations, d.Activities...),
		Ended:   func(ctx context.Context, out orchestrator.Outcome) error { return p.pipeline.Ended(ctx, out) },
		Damaged: func(ctx context.Context, d orchestrator.Damage) error { return p.pipeline.Damaged(ctx, d) }})
	if err != nil {
		t.Fatal(err)
	}
	p.pipeline, err = engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: p.runtime, Log: log, HostMaxDequeueCount: 8,
		History: engine.NewHistory(store, ""), DeadLetters: engine.NewDeadLetters(store, ""), Queues: messages, Locks: p.registry})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// serve delivers what is in the queues to one process after the other, until they are empty.
func (h *hall) serve(t *testing.T, next func() hallProcess) {
	t.Helper()
	for range 2000 {
		left, idle := 0, true
		for _, queue := range []string{doorQueue, signalQueue, scheduleQueue} {
			n, err := h.queues.Length(t.Context(), queue)
			if err != nil {
				t.Error(err)
				return
			}
			left += n
			messages, err := h.queues.Receive(t.Context(), queue, 1, visibility)
			if err != nil || len(messages) == 0 {
				continue
			}
			idle = false
			m, p := messages[0], next()
			handle := p.pipeline.HandleSignal
			if queue == doorQueue {
				handle = p.pipeline.Handle
			}
			stop := h.renew(t, queue, &m)
			err = handle(t.Context(), engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt})
			stop()
			if err != nil {
				continue
			}
			if err := h.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt); err != nil {
				t.Error(err)
			}
		}
		if left == 0 {
			return
		}
		if idle {
			time.Sleep(visibility / 3)
		}
	}
	t.Error("the messages do not come to rest")
}

// renew keeps a message to who handles it, as the host does.
func (h *hall) renew(t *testing.T, queue string, m *queues.Message) (stop func()) {
	t.Helper()
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(visibility / 2)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				if receipt, err := h.queues.Renew(t.Context(), queue, m.ID, m.PopReceipt, visibility); err == nil {
					m.PopReceipt = receipt
				}
			}
		}
	}()
	return func() { close(over); <-done }
}

func (h *hall) send(t *testing.T, correlationIDs ...string) {
	t.Helper()
	for _, id := range correlationIDs {
		body := fmt.Sprintf(`{"correlationId":%q,"instanceId":"i1"}`, id)
		if _, err := h.queues.Send(t.Context(), doorQueue, []byte(body), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// document is the registry's as it is now.
func (h *hall) document(t *testing.T) (registry.Instance, []string) {
	t.Helper()
	i, err := registry.New(h.tables, "").Get(t.Context(), "i1")
	if err != nil {
		t.Fatal(err)
	}
	var done []string
	if _, err := i.Field("done", &done); err != nil {
		t.Fatal(err)
	}
	return i, done
}

// check: each run has succeeded once, has counted once, and nobody has the lock.
func (h *hall) check(t *testing.T, correlationIDs ...string) {
	t.Helper()
	for _, id := range correlationIDs {
		runs := 0
		entries, err := engine.NewHistory(h.tables, "").Run(t.Context(), "door", id)
		for _, e := range entries {
			if e.RunStatus == engine.StatusSucceeded {
				runs++
			}
		}
		if err != nil || runs != 1 {
			t.Errorf("%s has succeeded %d times: %+v %v", id, runs, entries, err)
		}
	}
	i, done := h.document(t)
	if len(done) != len(correlationIDs) || i.Lock.JobID != "" {
		t.Errorf("the registry saw %v; the lock: %+v", done, i.Lock)
	}
	page, err := engine.NewDeadLetters(h.tables, "").List(t.Context(), engine.DeadLetterFilter{Engines: []string{"door"}})
	if err != nil || len(page.DeadLetters) != 0 {
		t.Errorf("dead letters %+v, %v", page.DeadLetters, err)
	}
}

// Two messages for one instance, and one process for each of three hosts: one runs, the other waits, and both succeed
// without an attempt burnt.
func TestTwoRunsForOneInstance(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHall(t)
				h.least = 1 + round*4 // up to where runs park
				h.send(t, "one", "two")
				var hosts sync.WaitGroup
				conflicts := 0
				var mu sync.Mutex
				for range 3 {
					p := h.process(t, nil)
					hosts.Go(func() {
						h.serve(t, func() hallProcess { return p })
						mu.Lock()
						defer mu.Unlock()
						conflicts += p.pipeline.Count(engine.Conflicting) + p.pipeline.Count(engine.Elsewhere)
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

// Two messages for one instance, with every fault at every storage call, and the process dying there: both succeed, and
// the lock is free in the end.
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
			run := func(t *testing.T, plan *faults.Plan) {
				h := newHall(t)
				h.least = scenario.least
				if scenario.fails {
					h.fail = failOnce()
				}
				h.send(t, "one", "two")
				p := h.process(t, plan)
				alive := func() hallProcess {
					if plan.Crashed() {
						p = h.process(t, nil)
					}
					return p
				}
				h.serve(t, alive)
				plan.Wait()
				h.serve(t, alive)
				h.check(t, "one", "two")
			}
			count := &faults.Plan{}
			synctest.Test(t, func(t *testing.T) { run(t, count) })
			for at := range count.Calls() {
				for _, fault := range faults.Faults() {
					t.Run(fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: fault}) })
					})
				}
			}
		})
	}
}

// Whoever else has the lock, a message waits for it without burning an attempt, and no longer than the lock lasts.
func TestAMessageWaitsForTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		p := h.process(t, nil)
		if _, err := p.registry.Acquire(t.Context(), "i1", "somebody", 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		err := p.pipeline.Conflict(t.Context(), engine.Message{Engine: "door", CorrelationID: "one", InstanceID: "i1"})
		if conflict, ok := errors.AsType[*engine.ConflictError](err); !ok || conflict.Holder != "somebody" || conflict.RetryAfter != 30*time.Second {
			t.Errorf("conflict: %+v", err)
		}
		began := time.Now()
		h.send(t, "one")
		h.serve(t, func() hallProcess { return p })
		if waited := time.Since(began); waited < 10*time.Minute || waited > 11*time.Minute {
			t.Errorf("it waited for %v", waited)
		}
		if n := p.pipeline.Count(engine.Conflicting); n < 15 {
			t.Errorf("%d conflicts", n)
		}
		h.check(t, "one")
		if err := p.pipeline.Conflict(t.Context(), engine.Message{Engine: "door", CorrelationID: "two", InstanceID: "i1"}); err != nil {
			t.Errorf("conflict with nobody: %v", err)
		}
	})
}

// The lock of a run that was stopped, or taken away, does not stay.
func TestTheLockOfARunThatIsNoMore(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(context.Context, hallProcess) error{
		"terminated": func(ctx context.Context, p hallProcess) error { return p.runtime.Terminate(ctx, "door-i1", "enough") },
		"canceled":   func(ctx context.Context, p hallProcess) error { return p.runtime.Cancel(ctx, "door-i1", "enough") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHall(t)
				h.waits = true
				p := h.process(t, nil)
				next := func() hallProcess { return p }
				h.send(t, "one")
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				m, err := h.queues.Receive(ctx, doorQueue, 1, visibility)
				if err != nil || len(m) != 1 {
					t.Fatal(err)
				}
				if err := p.pipeline.Handle(t.Context(), engine.Delivery{Queue: doorQueue, ID: m[0].ID, Body: queues.Decode(m[0].Text), DequeueCount: 1}); err != nil {
					t.Fatal(err)
				}
				if err := h.queues.Delete(ctx, doorQueue, m[0].ID, m[0].PopReceipt); err != nil {
					t.Fatal(err)
				}
				if i, _ := h.document(t); i.Lock.JobID != "door-i1/one" {
					t.Errorf("while it waits, the lock is %+v", i.Lock)
				}
				if err := stop(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				h.serve(t, next)
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
			p := h.process(t, nil)
			if _, err := p.registry.Acquire(t.Context(), "i1", "door-i1/purged", time.Hour); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			h.send(t, "one")
			h.serve(t, func() hallProcess { return p })
			if waited := time.Since(began); waited < time.Hour || waited > time.Hour+time.Minute {
				t.Errorf("it waited for %v", waited)
			}
			h.check(t, "one")
		})
	})
}

// A message for an instance that nobody has registered needs a person at once: no attempt can help.
func TestAnInstanceThatNobodyKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		p := h.process(t, nil)
		d := engine.Delivery{Queue: doorQueue, ID: "m", Body: []byte(`{"correlationId":"c","instanceId":"nobody"}`), DequeueCount: 1, InsertedAt: time.Now()}
		if err := p.pipeline.Handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		page, err := engine.NewDeadLetters(h.tables, "").List(t.Context(), engine.DeadLetterFilter{Engines: []string{"door"}})
		if err != nil || len(page.DeadLetters) != 1 || page.DeadLetters[0].DequeueCount != 1 {
			t.Errorf("%+v, %v", page.DeadLetters, err)
		}
		if !strings.Contains(page.DeadLetters[0].ErrorMessage, registry.ErrNotFound.Error()) {
			t.Errorf("%s", page.DeadLetters[0].ErrorMessage)
		}
	})
}
