package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	testQueue     = "turntable-queue"
	signalQueue   = "orchestration-signals"
	scheduleQueue = "orchestration-schedules"
	activityQueue = "orchestration-activities"
)

// world is what outlives processes: storage, and what the activities did to the rest of the world.
type world struct {
	observe func(context.Context, engine.Settled)

	tables *tables.Memory
	blobs  *blobs.Memory
	queues *queues.Memory

	turns   atomic.Int32                    // how often the first operation ran
	degrees atomic.Int32                    // by how much, the last time
	turn    func(ctx context.Context) error // what it does; nil succeeds
	oiled   atomic.Int32                    // how often the activity in between ran
	dry     error                           // what it fails with
	waits   bool                            // for an event, and an hour, before it does anything
	rests   rest                            // where it waits for an hour between what it does
	parts   int                             // how many activities it calls at once at the end, most of which run elsewhere

	adapt func(body []byte) (engine.Message, bool, error) // of foreign senders; nil for none

	claims *engine.Claims // of large inputs; nil for none

	now func() time.Time // the pipeline's clock; nil for the usual one

	runtime *orchestrator.Runtime // of the process that was made last
}

// rest is where a run of the engine waits, besides.
type rest int

const (
	never   rest = iota
	between      // its operations
	after        // its last operation, with something to do yet that is none
)

func newWorld() *world {
	return &world{tables: tables.NewMemory(), blobs: blobs.NewMemory(), queues: queues.NewMemory()}
}

type input struct {
	Degrees int `json:"degrees"`
}

// definition is an engine of two operations, turn and lock, with an activity in between that is none.
func (w *world) definition() engine.Definition {
	turn := orchestrator.NewActivity("turn", func(ctx context.Context, in input) (input, error) {
		w.turns.Add(1)
		w.degrees.Store(int32(in.Degrees))
		if w.turn != nil {
			return in, w.turn(ctx)
		}
		return in, nil
	})
	oil := orchestrator.NewActivity("oil", func(_ context.Context, n int) (int, error) {
		w.oiled.Add(1)
		if w.dry != nil {
			return n, w.dry
		}
		return n, nil
	})
	oils := func(ctx *orchestrator.Context) error {
		futures := make([]*orchestrator.Future[int], max(1, w.parts))
		for i := range futures {
			futures[i] = oil.Call(ctx, i)
		}
		_, err := orchestrator.All(futures...)
		return err
	}
	lock := orchestrator.NewActivity("lock", func(_ context.Context, instance string) (string, error) { return instance, nil })
	return engine.Definition{
		Name:       "turntable",
		Queue:      testQueue,
		Adapt:      w.adapt,
		Operations: []orchestrator.AnyActivity{turn, lock},
		Activities: []orchestrator.AnyActivity{oil},
		Orchestrator: engine.Orchestrate("turntable", func(ctx *orchestrator.Context, r engine.Request[input]) (string, error) {
			if w.waits {
				if _, err := orchestrator.Event[int](ctx, "go").Await(); err != nil {
					return "", err
				}
				if err := ctx.Sleep(time.Hour); err != nil {
					return "", err
				}
			}
			if _, err := turn.Call(ctx, r.Input).Await(); err != nil {
				return "", err
			}
			if w.rests == between {
				if err := ctx.Sleep(time.Hour); err != nil {
					return "", err
				}
			}
			if err := oils(ctx); err != nil {
				return "", err
			}
			locked, err := lock.Call(ctx, r.InstanceID).Await()
			if err == nil && w.rests == after {
				if err = ctx.Sleep(time.Hour); err == nil {
					err = oils(ctx)
				}
			}
			return locked, err
		}),
	}
}

// process is a pipeline over the world, as one process would have it; a nil plan only counts.
func (w *world) process(t *testing.T, plan *faults.Plan) *engine.Pipeline {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	return w.processOver(t, plan.Intercept)
}

// processOver is a process whose storage calls pass through an interceptor.
func (w *world) processOver(t *testing.T, intercept faults.Interceptor) *engine.Pipeline {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	store, d := faults.Tables(w.tables, intercept), w.definition()
	var p *engine.Pipeline
	rt, err := orchestrator.New(orchestrator.Config{Tables: store, Blobs: faults.Blobs(w.blobs, intercept), Log: log,
		Queues: faults.Queues(w.queues, intercept), MaxInlineActivities: spreadAbove,
		Ended:         func(ctx context.Context, out orchestrator.Outcome) error { return p.Ended(ctx, out) },
		Stalled:       func(ctx context.Context, out orchestrator.Outcome) error { return p.Stalled(ctx, out) },
		Damaged:       func(ctx context.Context, d orchestrator.Damage) error { return p.Damaged(ctx, d) },
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(d.Operations, d.Activities...)})
	if err != nil {
		t.Fatal(err)
	}
	w.runtime = rt
	p, err = engine.NewPipeline(engine.Config{
		Definitions: []engine.Definition{d}, Runtime: rt, Log: log, HostMaxDequeueCount: 8,
		History: engine.NewHistory(store, ""), DeadLetters: engine.NewDeadLetters(store, ""), Queues: faults.Queues(w.queues, intercept),
		Claims: w.claims, Now: w.now, Observe: w.observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) prepare(t *testing.T) {
	t.Helper()
	if err := errors.Join(w.process(t, nil).Prepare(t.Context()), w.runtime.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func (w *world) send(t *testing.T, body string) {
	t.Helper()
	if _, err := w.queues.Send(t.Context(), testQueue, []byte(body), 0); err != nil {
		t.Fatal(err)
	}
}

// spreadAbove is how many activities of a run a process keeps to itself.
const spreadAbove = 2

// visibility is for how long the miniature host below hides a message that it hands out, and after a failure.
const visibility = 30 * time.Second

// host delivers what is in the queues, as the Functions host would: nil deletes the message, an error makes it visible
// again later. next gives each delivery its process. It returns when the queues are empty, and fails after too many.
func (w *world) host(t *testing.T, next func(delivery int) *engine.Pipeline) (deliveries int) {
	t.Helper()
	handlers := map[string]func(p *engine.Pipeline, ctx context.Context, d engine.Delivery) error{
		testQueue: (*engine.Pipeline).Handle, signalQueue: (*engine.Pipeline).HandleSignal, scheduleQueue: (*engine.Pipeline).HandleSignal,
		activityQueue: (*engine.Pipeline).HandleActivities}
	for {
		left, idle := 0, true
		for queue, handle := range handlers {
			n, err := w.queues.Length(t.Context(), queue)
			if err != nil {
				t.Fatal(err)
			}
			left += n
			if w.handOut(t, queue, func(ctx context.Context, d engine.Delivery) error {
				if deliveries++; deliveries > 60 {
					t.Fatal("the message does not come to rest")
				}
				return handle(next(deliveries), ctx, d)
			}) {
				idle = false
			}
		}
		if left == 0 {
			return deliveries
		}
		if idle {
			time.Sleep(visibility) // virtual: every caller runs under synctest
		}
	}
}

// handOut delivers one message of a queue, and deletes it unless that failed. It reports whether there was one.
func (w *world) handOut(t *testing.T, queue string, handle func(context.Context, engine.Delivery) error) bool {
	t.Helper()
	messages, err := w.queues.Receive(t.Context(), queue, 1, visibility)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		d := engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}
		if handle(t.Context(), d) != nil {
			continue
		}
		if err := w.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt); err != nil {
			t.Fatal(err)
		}
	}
	return len(messages) > 0
}

// take takes the one message that is visible in a queue out of it.
func (w *world) take(t *testing.T, queue string) queues.Message {
	t.Helper()
	messages, err := w.queues.Receive(t.Context(), queue, 2, visibility)
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages are in %s, %v", len(messages), queue, err)
	}
	if err := w.queues.Delete(t.Context(), queue, messages[0].ID, messages[0].PopReceipt); err != nil {
		t.Fatal(err)
	}
	return messages[0]
}

// delivery is the one message that is visible in a queue, as the host would deliver it and then delete it.
func (w *world) delivery(t *testing.T, queue string) engine.Delivery {
	t.Helper()
	m := w.take(t, queue)
	return engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}
}

// event raises the event that the engine waits for when it waits.
func (w *world) event(t *testing.T, correlationID string, delay time.Duration) {
	t.Helper()
	body := fmt.Sprintf(`{"signalId":"go","workflowInstanceId":"turntable-%s","runtimeProvider":"roundhouse","signalType":"ExternalSignal","payload":{"event":"go","data":1}}`, correlationID)
	if _, err := w.queues.Send(t.Context(), signalQueue, []byte(body), delay); err != nil {
		t.Fatal(err)
	}
}

func (w *world) always(p *engine.Pipeline) func(int) *engine.Pipeline {
	return func(int) *engine.Pipeline { return p }
}

func (w *world) history(t *testing.T, correlationID string) []engine.Entry {
	t.Helper()
	entries, err := engine.NewHistory(w.tables, "").Run(t.Context(), "turntable", correlationID)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// deadLetters reads all of the engine, whole.
func (w *world) deadLetters(t *testing.T) []engine.DeadLetter {
	t.Helper()
	return w.deadLettersOf(t, "turntable")
}

func (w *world) deadLettersOf(t *testing.T, name string) []engine.DeadLetter {
	t.Helper()
	store := engine.NewDeadLetters(w.tables, "")
	page, err := store.List(t.Context(), engine.DeadLetterFilter{Engines: []string{name}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var all []engine.DeadLetter
	for _, item := range page.DeadLetters {
		d, err := store.Get(t.Context(), item.Engine, item.RowKey)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// checkSucceeded: each operation succeeded once, the run as a whole once, and nothing is dead.
func (w *world) checkSucceeded(t *testing.T, correlationID string) {
	t.Helper()
	var succeeded []string
	runs := 0
	for _, e := range w.history(t, correlationID) {
		if e.Status == engine.StatusSucceeded {
			succeeded = append(succeeded, e.Operation)
		}
		if e.RunStatus == engine.StatusSucceeded {
			runs++
		}
	}
	if fmt.Sprint(succeeded) != "[turn lock]" || runs != 1 {
		t.Errorf("succeeded operations %v in %d runs", succeeded, runs)
	}
	if dead := w.deadLetters(t); len(dead) != 0 {
		t.Errorf("dead letters: %+v", dead)
	}
}

// checkSuperseded: no list of failures has what failed before the run succeeded, unless it is asked for, and every list has
// everything once.
func (w *world) checkSuperseded(t *testing.T, correlationID string) {
	t.Helper()
	all := w.history(t, correlationID)
	failed, by := 0, ""
	for _, e := range all {
		if e.RunStatus == engine.StatusSucceeded {
			by = e.RowKey
		}
	}
	for _, e := range all {
		if e.Status == engine.StatusFailed {
			failed++
		}
		if e.Status == engine.StatusFailed && e.SupersededBy != by || e.Status == engine.StatusSucceeded && e.SupersededBy != "" {
			t.Errorf("%s of %s is superseded by %q", e.Operation, e.RowKey, e.SupersededBy)
		}
	}
	for _, tenantID := range []string{"", "contoso"} {
		for _, id := range []string{"", correlationID} {
			for want, f := range map[int]engine.HistoryFilter{
				0: {Status: engine.StatusFailed}, failed: {Status: engine.StatusFailed, Superseded: true}, len(all): {}, len(all) - failed: {Status: engine.StatusSucceeded, Superseded: true},
			} {
				f.Engines, f.TenantID, f.CorrelationID, f.Limit = []string{"turntable"}, tenantID, id, engine.MaxLimit
				page, err := engine.NewHistory(w.tables, "").List(t.Context(), f)
				if err != nil || len(page.Entries) != want {
					t.Errorf("%+v: %d entries of %d, %v", f, len(page.Entries), want, err)
				}
			}
		}
	}
}

const good = `{"correlationId":"c1","engine":"turntable","instanceId":"i1","tenantId":"Contoso","input":{"degrees":90}}`

// deliverWithin delivers at most one message, with a bounded invocation.
func (w *world) deliverWithin(t *testing.T, p *engine.Pipeline, budget time.Duration) int {
	t.Helper()
	messages, err := w.queues.Receive(t.Context(), testQueue, 1, visibility)
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) == 0 {
		time.Sleep(visibility)
		return 0
	}
	m := messages[0]
	ctx, cancel := context.WithTimeout(t.Context(), budget)
	defer cancel()
	err = p.Handle(ctx, engine.Delivery{Queue: testQueue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt})
	if err == nil {
		if err := w.queues.Delete(t.Context(), testQueue, m.ID, m.PopReceipt); err != nil {
			t.Fatal(err)
		}
	}
	return 1
}

// checkDead: there is one dead letter, and its run, if there was one, has failed for good.
func checkDead(message string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		dead := w.deadLetters(t)
		if len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, message) {
			t.Errorf("dead letters: %+v", dead)
		}
		w.process(t, nil)
		out, err := w.runtime.Get(t.Context(), "turntable-c1")
		if !errors.Is(err, orchestrator.ErrNotFound) && (err != nil || out.Status != orchestrator.Failed) {
			t.Errorf("its run is %s, %v", out.Status, err)
		}
	}
}
