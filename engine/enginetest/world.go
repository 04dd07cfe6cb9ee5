package enginetest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// HostMaxDequeueCount is the number of deliveries after which the host moves a message to the poison queue.
const HostMaxDequeueCount = 8

// Stores are the storage of one process: its Plan intercepts every call.
type Stores struct {
	Tables tables.Store
	Queues queues.Store
	Blobs  blobs.Store
	// Intercept passes a call of another service through the Plan.
	Intercept func(ctx context.Context, c Call, next func(context.Context) error) error
}

// Config describes an app of engines. Only Engines is required.
type Config struct {
	// Engines returns the definitions of a process, which reach storage through s. It is called for every process.
	Engines func(s Stores) []engine.Definition
	// Publish is called with events before they are recorded in Published; an error refuses them. Nil accepts all.
	Publish func(ctx context.Context, events []orchestrator.Publication) error
	// Runtime and Pipeline change the configuration of a process, which is that of an app; nil changes nothing.
	Runtime  func(c *orchestrator.Config)
	Pipeline func(c *engine.Config)
	// Log receives the logs of processes; nil discards them.
	Log *slog.Logger
	// Tables is existing storage; nil creates new storage.
	Tables *tables.Memory
	// MaxDeliveries is the number of deliveries after which Run fails the test; 0 is 10,000.
	MaxDeliveries int
}

// World is storage, the processes over it, and the host that delivers messages to the last of them.
type World struct {
	// Config configures the next process.
	Config Config
	// Tables, Queues and Blobs are the stores that all processes share.
	Tables *tables.Memory
	Queues *queues.Memory
	Blobs  *blobs.Memory

	t testing.TB

	mu        sync.Mutex
	process   *Process
	published []orchestrator.Publication
}

// Process is one process: a pipeline on a runtime.
type Process struct {
	*engine.Pipeline
	Runtime *orchestrator.Runtime
	Stores  Stores

	world  *World
	plan   *Plan
	queues []queue
}

// queue is a queue that a process listens to.
type queue struct {
	name   string
	handle func(context.Context, engine.Delivery) error
	poison string // the queue of abandoned messages; "" for none
}

// New creates the storage of an app and starts its first process. Errors fail the test, here and in every method.
func New(t testing.TB, c Config) *World {
	t.Helper()
	w := &World{Config: c, Tables: c.Tables, Queues: queues.NewMemory(), Blobs: blobs.NewMemory(), t: t}
	if w.Tables == nil {
		w.Tables = tables.NewMemory()
	}
	p := w.Restart(nil)
	ctx := t.Context()
	if err := errors.Join(p.Runtime.Prepare(ctx), p.Prepare(ctx), w.Registry().CreateTable(ctx)); err != nil {
		t.Fatal(err)
	}
	return w
}

// Restart starts a process that replaces the last one. Plan breaks its storage calls; nil breaks none.
func (w *World) Restart(plan *Plan) *Process {
	w.t.Helper()
	if plan == nil {
		plan = &Plan{}
	}
	p := w.start(plan, plan.Intercept)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.process = p
	return p
}

// RestartOver is Restart with storage calls that pass through an interceptor of the test.
func (w *World) RestartOver(intercept faults.Interceptor) *Process {
	w.t.Helper()
	p := w.start(&Plan{}, intercept)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.process = p
	return p
}

// start starts a process. Its configuration is that of an app (package handler).
func (w *World) start(plan *Plan, intercept faults.Interceptor) *Process {
	w.t.Helper()
	s := Stores{Tables: faults.Tables(w.Tables, intercept), Queues: faults.Queues(w.Queues, intercept),
		Blobs: faults.Blobs(w.Blobs, intercept), Intercept: intercept}
	p, log := &Process{Stores: s, world: w, plan: plan}, cmp.Or(w.Config.Log, slog.New(slog.DiscardHandler))
	var definitions []engine.Definition
	if w.Config.Engines != nil {
		definitions = w.Config.Engines(s)
	}
	rc := orchestrator.Config{Tables: s.Tables, Queues: s.Queues, Blobs: s.Blobs, Log: log, Publish: w.publish,
		Ended:   func(ctx context.Context, out orchestrator.Outcome) error { return p.Ended(ctx, out) },
		Stalled: func(ctx context.Context, out orchestrator.Outcome) error { return p.Pipeline.Stalled(ctx, out) },
		Damaged: func(ctx context.Context, d orchestrator.Damage) error { return p.Pipeline.Damaged(ctx, d) }}
	for _, d := range definitions {
		rc.Orchestrators = append(rc.Orchestrators, d.Orchestrators()...)
		rc.Activities = slices.Concat(rc.Activities, d.Operations, d.Activities)
	}
	if w.Config.Runtime != nil {
		w.Config.Runtime(&rc)
	}
	var err error
	if p.Runtime, err = orchestrator.New(rc); err != nil {
		w.t.Fatalf("the runtime: %v", err)
	}
	pc := engine.Config{Definitions: definitions, Runtime: p.Runtime, Queues: s.Queues, Log: log,
		History: engine.NewHistory(s.Tables, ""), DeadLetters: engine.NewDeadLetters(s.Tables, ""),
		Claims: engine.NewClaims(s.Blobs, ""), Locks: registry.New(s.Tables, ""), HostMaxDequeueCount: HostMaxDequeueCount}
	if w.Config.Pipeline != nil {
		w.Config.Pipeline(&pc)
	}
	if p.Pipeline, err = engine.NewPipeline(pc); err != nil {
		w.t.Fatalf("the pipeline: %v", err)
	}
	for _, d := range pc.Definitions {
		p.listen(d.Queue, p.Handle, p.HandlePoison)
	}
	p.listen(p.Runtime.SignalQueue(), p.HandleSignal, p.HandleSignalPoison)
	p.listen(p.Runtime.ScheduleQueue(), p.HandleSignal, p.HandleSignalPoison)
	p.listen(p.Runtime.ActivityQueue(), p.HandleActivities, p.HandleActivitiesPoison)
	return p
}

// listen adds a queue, and its poison queue.
func (p *Process) listen(name string, handle, poison func(context.Context, engine.Delivery) error) {
	poisoned := name + engine.PoisonSuffix
	p.queues = append(p.queues, queue{name, handle, poisoned}, queue{poisoned, poison, ""})
}

// publish records events, each once, as an outbox keeps them.
func (w *World) publish(ctx context.Context, events []orchestrator.Publication) error {
	if w.Config.Publish != nil {
		if err := w.Config.Publish(ctx, events); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		same := func(p orchestrator.Publication) bool { return p.TenantID == e.TenantID && p.Key == e.Key }
		if !slices.ContainsFunc(w.published, same) {
			w.published = append(w.published, e)
		}
	}
	return nil
}

// Published returns the events that orchestrators published, each once, in order.
func (w *World) Published() []orchestrator.Publication {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.published)
}

// Process returns the current process: the last one, or its replacement if it has crashed.
func (w *World) Process() *Process {
	w.t.Helper()
	w.mu.Lock()
	p := w.process
	w.mu.Unlock()
	if p.plan.Crashed() {
		return w.Restart(nil)
	}
	return p
}

// Runtime returns the runtime of Process.
func (w *World) Runtime() *orchestrator.Runtime { return w.Process().Runtime }

// Registry returns the registry of instances.
func (w *World) Registry() *registry.Registry { return registry.New(w.Tables, "") }

// Outcome returns the state or the end of an orchestration, read without faults. The id of a run is
// "{engine}-{correlation id}", that of a singleton "{engine}-{instance id}".
func (w *World) Outcome(id string) orchestrator.Outcome {
	w.t.Helper()
	reader, err := orchestrator.New(orchestrator.Config{Tables: w.Tables, Blobs: w.Blobs})
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := reader.Get(w.t.Context(), id)
	if err != nil {
		w.t.Fatalf("orchestration %s: %v", id, err)
	}
	return out
}

// History returns the entries of a run, oldest first.
func (w *World) History(name, correlationID string) []engine.Entry {
	w.t.Helper()
	entries, err := engine.NewHistory(w.Tables, "").Run(w.t.Context(), name, correlationID)
	if err != nil {
		w.t.Fatal(err)
	}
	return entries
}

// DeadLetters returns an engine's dead letters with all fields, newest first, up to a hundred.
func (w *World) DeadLetters(name string) []engine.DeadLetter {
	w.t.Helper()
	store := engine.NewDeadLetters(w.Tables, "")
	page, err := store.List(w.t.Context(), engine.DeadLetterFilter{Engines: []string{name}, Limit: engine.MaxLimit})
	if err != nil {
		w.t.Fatal(err)
	}
	for i, d := range page.DeadLetters {
		if page.DeadLetters[i], err = store.Get(w.t.Context(), d.Engine, d.RowKey); err != nil {
			w.t.Fatal(err)
		}
	}
	return page.DeadLetters
}

// Send sends a message to a queue.
func (w *World) Send(queue, body string) { w.SendIn(queue, body, 0) }

// SendIn sends a message to a queue that becomes due after a delay.
func (w *World) SendIn(queue, body string, delay time.Duration) {
	w.t.Helper()
	if _, err := w.Queues.Send(w.t.Context(), queue, []byte(body), delay); err != nil {
		w.t.Fatal(err)
	}
}
