package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	testQueue   = "turntable-queue"
	signalQueue = "orchestration-signals"
)

// world is what outlives processes: storage, and what the activities did to the rest of the world.
type world struct {
	tables *tables.Memory
	blobs  *blobs.Memory
	queues *queues.Memory

	turns atomic.Int32                    // how often the first operation ran
	turn  func(ctx context.Context) error // what it does; nil succeeds
	waits bool                            // for an event, and an hour, before it does anything
}

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
		if w.turn != nil {
			return in, w.turn(ctx)
		}
		return in, nil
	})
	oil := orchestrator.NewActivity("oil", func(context.Context, int) (int, error) { return 0, nil })
	lock := orchestrator.NewActivity("lock", func(_ context.Context, instance string) (string, error) { return instance, nil })
	return engine.Definition{
		Name:       "turntable",
		Queue:      testQueue,
		Operations: []orchestrator.AnyActivity{turn, lock},
		Activities: []orchestrator.AnyActivity{oil},
		Orchestrator: engine.Orchestrate("turntable", func(ctx *orchestrator.Context, r engine.Request[input]) (string, error) {
			if w.waits {
				if _, err := orchestrator.Event[int](ctx, "go").Await(); err != nil {
					return "", err
				}
				ctx.Sleep(time.Hour)
			}
			if _, err := turn.Call(ctx, r.Input).Await(); err != nil {
				return "", err
			}
			if _, err := oil.Call(ctx, 1).Await(); err != nil {
				return "", err
			}
			return lock.Call(ctx, r.InstanceID).Await()
		}),
	}
}

// process is a pipeline over the world, as one process would have it; a nil plan only counts.
func (w *world) process(t *testing.T, plan *faults.Plan) *engine.Pipeline {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	store, d := faults.Tables(w.tables, plan.Intercept), w.definition()
	var p *engine.Pipeline
	rt, err := orchestrator.New(orchestrator.Config{Tables: store, Blobs: faults.Blobs(w.blobs, plan.Intercept), Log: log,
		Queues:        faults.Queues(w.queues, plan.Intercept),
		Ended:         func(ctx context.Context, out orchestrator.Outcome) error { return p.Ended(ctx, out) },
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(d.Operations, d.Activities...)})
	if err != nil {
		t.Fatal(err)
	}
	p, err = engine.NewPipeline(engine.Config{
		Definitions: []engine.Definition{d}, Runtime: rt, Log: log, HostMaxDequeueCount: 8,
		History: engine.NewHistory(store, ""), DeadLetters: engine.NewDeadLetters(store, ""), Queues: faults.Queues(w.queues, plan.Intercept),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) prepare(t *testing.T) {
	t.Helper()
	if err := errors.Join(w.process(t, nil).Prepare(t.Context()), w.tables.CreateTable(t.Context(), "orchestrations"),
		w.blobs.CreateContainer(t.Context(), "orchestrations"), w.queues.CreateQueue(t.Context(), signalQueue)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) send(t *testing.T, body string) {
	t.Helper()
	if _, err := w.queues.Send(t.Context(), testQueue, []byte(body), 0); err != nil {
		t.Fatal(err)
	}
}

// visibility is for how long the miniature host below hides a message that it hands out, and after a failure.
const visibility = 30 * time.Second

// host delivers what is in the queues, as the Functions host would: nil deletes the message, an error makes it visible
// again later. next gives each delivery its process. It returns when the queues are empty, and fails after too many.
func (w *world) host(t *testing.T, next func(delivery int) *engine.Pipeline) (deliveries int) {
	t.Helper()
	handlers := map[string]func(p *engine.Pipeline, ctx context.Context, d engine.Delivery) error{
		testQueue: (*engine.Pipeline).Handle, signalQueue: (*engine.Pipeline).HandleSignal}
	for {
		left, idle := 0, true
		for queue, handle := range handlers {
			n, err := w.queues.Length(t.Context(), queue)
			if err != nil {
				t.Fatal(err)
			}
			left += n
			messages, err := w.queues.Receive(t.Context(), queue, 1, visibility)
			if err != nil {
				t.Fatal(err)
			}
			if len(messages) == 0 {
				continue
			}
			if idle, deliveries = false, deliveries+1; deliveries > 60 {
				t.Fatal("the message does not come to rest")
			}
			m := messages[0]
			if handle(next(deliveries), t.Context(), engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text),
				DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}) != nil {
				continue
			}
			if err := w.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt); err != nil {
				t.Fatal(err)
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

// deadLetters reads all of them, whole.
func (w *world) deadLetters(t *testing.T) []engine.DeadLetter {
	t.Helper()
	store := engine.NewDeadLetters(w.tables, "")
	page, err := store.List(t.Context(), engine.DeadLetterFilter{Engines: []string{"turntable"}, Limit: 100})
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

const good = `{"correlationId":"c1","engine":"turntable","instanceId":"i1","input":{"degrees":90}}`

// The budget of one message (design, section 13): its activities, and five.
func TestTransactionsOfOneMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, plan := newWorld(), &faults.Plan{}
		w.prepare(t)
		w.send(t, good)
		const activities, byHost = 3, 2 // the host gets and deletes the message
		w.host(t, w.always(w.process(t, plan)))
		if got := len(plan.Calls()) + byHost; got > activities+5 {
			t.Errorf("%d storage transactions for %d activities: %v", got, activities, plan.Calls())
		}
		w.checkSucceeded(t, "c1")
		// A duplicate costs the look-up.
		again := &faults.Plan{}
		p := w.process(t, again)
		w.send(t, good)
		w.host(t, w.always(p))
		if got := len(again.Calls()); got != 1 || p.Count(engine.Duplicate) != 1 {
			t.Errorf("a duplicate cost %d transactions, %d were counted", got, p.Count(engine.Duplicate))
		}
		if w.turns.Load() != 1 {
			t.Errorf("%d turns", w.turns.Load())
		}
		w.checkSucceeded(t, "c1")
	})
}

func TestHistoryEntries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.prepare(t)
		w.turn = func(context.Context) error { time.Sleep(1500 * time.Millisecond); return nil }
		w.send(t, good)
		w.host(t, w.always(w.process(t, nil)))
		entries := w.history(t, "c1")
		if len(entries) != 2 {
			t.Fatalf("%d entries", len(entries))
		}
		turn, lock := entries[0], entries[1]
		if turn.Operation != "turn" || turn.DurationMs != 1500 || string(turn.Input) != `{"degrees":90}` || string(turn.Output) != `{"degrees":90}` ||
			turn.InstanceID != "i1" || turn.RunStatus != "" || turn.Status != engine.StatusSucceeded {
			t.Errorf("%+v", turn)
		}
		if lock.Operation != "lock" || string(lock.Output) != `"i1"` || lock.RunStatus != engine.StatusSucceeded {
			t.Errorf("%+v", lock)
		}
	})
}

func TestMessagesThatAreDeadAtOnce(t *testing.T) {
	t.Parallel()
	big := `{"correlationId":"big","input":"` + strings.Repeat("x", 64<<10-40) + `"}`
	tests := map[string]struct {
		body     string
		reason   engine.Reason
		message  string
		instance string
	}{
		"not JSON":             {"this is not JSON", engine.ReasonUndecodable, "not a JSON object", ""},
		"empty":                {"", engine.ReasonUndecodable, "not a JSON object", ""},
		"an array":             {"[1]", engine.ReasonUndecodable, "not a JSON object", ""},
		"half an object":       {`{"correlationId":"c`, engine.ReasonUndecodable, "unexpected end", ""},
		"wrong types":          {`{"correlationId":7}`, engine.ReasonUndecodable, "cannot unmarshal number", ""},
		"not UTF-8":            {"{\"correlationId\":\"\xff\xfe\"}", engine.ReasonUndecodable, "not UTF-8", ""},
		"with NUL":             {"{\x00}", engine.ReasonUndecodable, "invalid character", ""},
		"unknown engine":       {`{"correlationId":"u","engine":"roundabout","instanceId":"i1"}`, engine.ReasonUnknownEngine, `"roundabout"`, "i1"},
		"64 KiB":               {big, engine.ReasonOverSize, "48128 are allowed", ""},
		"correlation too long": {`{"correlationId":"` + strings.Repeat("c", 129) + `"}`, engine.ReasonOverSize, "129 bytes", ""},
		"ids of all kinds": {`{"correlationId":"a/b\\c#d?e-日本-%2F","engine":"nobody","instanceId":"/subscriptions/1/x\\y#z?ü"}`,
			engine.ReasonUnknownEngine, `"nobody"`, `/subscriptions/1/x\y#z?ü`},
		"unknown input":       {`{"correlationId":"f","instanceId":"i1","input":{"degree":90}}`, engine.ReasonPermanent, `unknown field "degree"`, "i1"},
		"input of other type": {`{"correlationId":"f","instanceId":"i1","input":"90"}`, engine.ReasonPermanent, "cannot unmarshal string", "i1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.prepare(t)
			p := w.process(t, nil)
			d := engine.Delivery{Queue: testQueue, ID: "11111111-2222-3333-4444-555555555555", Body: []byte(tt.body), DequeueCount: 1,
				InsertedAt: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
			// Delivered twice: the acknowledgement of the first can get lost.
			for range 2 {
				if err := p.Handle(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				d.DequeueCount++
			}
			dead := w.deadLetters(t)
			if len(dead) != 1 {
				t.Fatalf("%d dead letters", len(dead))
			}
			l := dead[0]
			if !bytes.Equal(l.OriginalMessage, []byte(tt.body)) || l.DetectedReason != tt.reason || !strings.Contains(l.ErrorMessage, tt.message) ||
				l.DequeueCount != 1 || l.OriginalQueue != testQueue || l.InstanceID != tt.instance || l.Status != engine.StatusPending || l.CorrelationID == "" {
				t.Errorf("%+v", l)
			}
			if l.FirstFailureAtUtc.IsZero() || l.LastFailureAtUtc.Before(l.FirstFailureAtUtc) {
				t.Errorf("failed from %v to %v", l.FirstFailureAtUtc, l.LastFailureAtUtc)
			}
			if w.turns.Load() != 0 {
				t.Error("an operation ran")
			}
		})
	}
}

func TestIDsOfAllKindsRun(t *testing.T) {
	t.Parallel()
	for _, id := range []string{`a/b\c#d?e`, "日本-ü-🚂", "~'%20=", strings.Repeat("/", 128), "x-20261121T000000.000000Z"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.prepare(t)
			body, err := json.Marshal(engine.Message{CorrelationID: id, InstanceID: id, Input: []byte(`{"degrees":1}`)})
			if err != nil {
				t.Fatal(err)
			}
			w.send(t, string(body))
			w.host(t, w.always(w.process(t, nil)))
			w.checkSucceeded(t, id)
			if got := w.history(t, id)[1]; got.InstanceID != id || got.CorrelationID != id {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAnActivityThatAlwaysFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.prepare(t)
		began := time.Now()
		w.turn = func(context.Context) error { return fmt.Errorf("jammed, turn %d", w.turns.Load()) }
		w.send(t, good)
		p := w.process(t, nil)
		if n := w.host(t, w.always(p)); n != 5 {
			t.Errorf("%d deliveries", n)
		}
		dead := w.deadLetters(t)
		if len(dead) != 1 || w.turns.Load() != 4 {
			t.Fatalf("%d dead letters after %d turns", len(dead), w.turns.Load())
		}
		l := dead[0]
		if l.DequeueCount != 5 || l.DetectedReason != engine.ReasonAttemptsExhausted || string(l.OriginalMessage) != good || l.CorrelationID != "c1" {
			t.Errorf("%+v", l)
		}
		if !strings.Contains(l.ErrorMessage, "jammed, turn 4") {
			t.Errorf("error %q", l.ErrorMessage)
		}
		first, last := l.FirstFailureAtUtc.Sub(began), l.LastFailureAtUtc.Sub(began)
		if first.Round(time.Second) != 0 || last.Round(time.Second) != 3*visibility {
			t.Errorf("failed first after %v and last after %v", first, last)
		}
		entries := w.history(t, "c1")
		for i, e := range entries {
			if e.Status != engine.StatusFailed || e.RunStatus != engine.StatusFailed || e.Error != fmt.Sprintf("jammed, turn %d", i+1) {
				t.Errorf("entry %d: %+v", i, e)
			}
		}
		if len(entries) != 4 || p.Count(engine.Failed) != 4 || p.Count(engine.DeadLettered) != 1 {
			t.Errorf("%d entries, counts %d and %d", len(entries), p.Count(engine.Failed), p.Count(engine.DeadLettered))
		}
	})
}

// The work is done, but the history does not take it until the attempts are used up: it is no dead letter then.
func TestAHistoryThatComesBackLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.prepare(t)
		w.send(t, good)
		away := &faults.Plan{Refuse: func(c faults.Call) bool { return c.Target == engine.DefaultHistoryTable && c.Operation == "Apply" }}
		n := w.host(t, func(delivery int) *engine.Pipeline {
			if delivery < engine.DefaultMaxAttempts {
				return w.process(t, away)
			}
			return w.process(t, nil)
		})
		if n != engine.DefaultMaxAttempts || w.turns.Load() != 1 {
			t.Errorf("%d deliveries, %d turns", n, w.turns.Load())
		}
		w.checkSucceeded(t, "c1")
	})
}

// A run that a signal brings to its end is settled as if its message had; when it always fails, it uses up the attempts
// of its message.
func TestRunsThatWait(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		turn  error
		check func(*testing.T, *world)
		turns int32
	}{
		"succeeds":     {nil, func(t *testing.T, w *world) { w.checkSucceeded(t, "c1") }, 1},
		"always fails": {errors.New("jammed"), checkDead("jammed"), 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.waits, w.turn = true, func(context.Context) error { return tt.turn }
				w.prepare(t)
				w.send(t, good)
				w.event(t, "c1", 24*time.Hour)
				began := time.Now()
				p := w.process(t, nil)
				w.host(t, w.always(p))
				tt.check(t, w)
				if w.turns.Load() != tt.turns || time.Since(began) < 25*time.Hour || p.Count(engine.Parked) == 0 {
					t.Errorf("%d turns in %v", w.turns.Load(), time.Since(began))
				}
				// A signal that comes late changes nothing.
				late := `{"signalId":"late","workflowInstanceId":"turntable-c1","runtimeProvider":"roundhouse","signalType":"TimerDue"}`
				if _, err := w.queues.Send(t.Context(), signalQueue, []byte(late), 0); err != nil {
					t.Fatal(err)
				}
				if n := w.host(t, w.always(p)); n != 1 || w.turns.Load() != tt.turns {
					t.Errorf("a late signal led to %d deliveries and %d turns", n, w.turns.Load())
				}
				tt.check(t, w)
				for _, d := range w.deadLetters(t) {
					if d.DequeueCount != 5 || string(d.OriginalMessage) != good {
						t.Errorf("%+v", d)
					}
				}
			})
		})
	}
}

func TestSignalsThatNobodyCanApply(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.prepare(t)
	p := w.process(t, nil)
	stray := `{"signalId":"go","workflowInstanceId":"nobody","runtimeProvider":"roundhouse","signalType":"TimerDue"}`
	if err := p.HandleSignal(t.Context(), engine.Delivery{Queue: signalQueue, ID: "1", Body: []byte(stray), DequeueCount: 1}); !errors.Is(err, orchestrator.ErrNotFound) {
		t.Errorf("%v", err)
	}
	for id, d := range map[string]struct {
		handle func(context.Context, engine.Delivery) error
		body   string
	}{"2": {p.HandleSignal, "garbage"}, "3": {p.HandleSignalPoison, stray}} {
		if err := d.handle(t.Context(), engine.Delivery{Queue: signalQueue, ID: id, Body: []byte(d.body), DequeueCount: 1}); err != nil {
			t.Errorf("%s: %v", d.body, err)
		}
	}
	page, err := engine.NewDeadLetters(w.tables, "").List(t.Context(), engine.DeadLetterFilter{Engines: []string{engine.SignalEngine}})
	if err != nil || len(page.DeadLetters) != 2 {
		t.Errorf("%+v %v", page, err)
	}
}

func TestAPermanentErrorIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.prepare(t)
		w.turn = func(context.Context) error { return orchestrator.Permanent(errors.New("no such table")) }
		w.send(t, good)
		if n := w.host(t, w.always(w.process(t, nil))); n != 1 {
			t.Errorf("%d deliveries", n)
		}
		dead := w.deadLetters(t)
		if len(dead) != 1 || dead[0].DetectedReason != engine.ReasonPermanent || !strings.Contains(dead[0].ErrorMessage, "no such table") || dead[0].DequeueCount != 1 {
			t.Errorf("%+v", dead)
		}
		if e := w.history(t, "c1"); len(e) != 1 || e[0].Status != engine.StatusFailed {
			t.Errorf("%+v", e)
		}
	})
}

func TestARunThatRecoversShowsBothAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.prepare(t)
		w.turn = func(context.Context) error {
			if w.turns.Load() == 1 {
				return errors.New("jammed")
			}
			return nil
		}
		w.send(t, good)
		if n := w.host(t, w.always(w.process(t, nil))); n != 2 {
			t.Errorf("%d deliveries", n)
		}
		w.checkSucceeded(t, "c1")
		if e := w.history(t, "c1"); len(e) != 3 || e[0].Error != "jammed" {
			t.Errorf("%+v", e)
		}
	})
}

// Time that runs out does not use up attempts as long as there is progress, and does when there is none.
func TestParking(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		slowTurns  int32
		deliveries int
		dead       bool
	}{
		"once":       {slowTurns: 1, deliveries: 2},
		"never ends": {slowTurns: 1000, deliveries: 6, dead: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.prepare(t)
				w.turn = func(ctx context.Context) error {
					if w.turns.Load() <= tt.slowTurns {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}
				w.send(t, good)
				p := w.process(t, nil)
				n := 0
				for {
					left, err := w.queues.Length(t.Context(), testQueue)
					if err != nil || left == 0 {
						break
					}
					n += w.deliverWithin(t, p, 10*time.Second)
				}
				if n != tt.deliveries {
					t.Errorf("%d deliveries", n)
				}
				if !tt.dead {
					w.checkSucceeded(t, "c1")
					return
				}
				dead := w.deadLetters(t)
				if len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, "ran out") || string(dead[0].OriginalMessage) != good || dead[0].DequeueCount != 5 {
					t.Errorf("%+v", dead)
				}
			})
		})
	}
}

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

func TestPoison(t *testing.T) {
	t.Parallel()
	poison := func(body string) engine.Delivery {
		return engine.Delivery{Queue: testQueue + engine.PoisonSuffix, ID: "poison-1", Body: []byte(body), DequeueCount: 1, InsertedAt: time.Unix(1e9, 0)}
	}
	tests := map[string]struct {
		body    string
		before  func(t *testing.T, w *world)
		message string // of the one dead letter; "" for none from the poison queue
		fate    engine.Fate
	}{
		"never ran":   {good, nil, "no attempt lived long enough", engine.DeadLettered},
		"undecodable": {"garbage", nil, "not a JSON object", engine.DeadLettered},
		"already dead": {good, func(t *testing.T, w *world) {
			w.turn = func(context.Context) error { return orchestrator.Permanent(errors.New("jammed")) }
			w.send(t, good)
			w.host(t, w.always(w.process(t, nil)))
		}, "", engine.Duplicate},
		"failed before": {good, func(t *testing.T, w *world) {
			w.turn = func(context.Context) error { return errors.New("jammed") }
			if err := w.process(t, nil).Handle(t.Context(), engine.Delivery{Queue: testQueue, ID: "m", Body: []byte(good), DequeueCount: 1}); err == nil {
				t.Fatal("it did not fail")
			}
		}, "jammed", engine.DeadLettered},
		"succeeded after all": {good, func(t *testing.T, w *world) {
			w.send(t, good)
			w.host(t, w.always(w.process(t, nil)))
		}, "", engine.Duplicate},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.prepare(t)
				if tt.before != nil {
					tt.before(t, w)
				}
				p := w.process(t, nil)
				known := len(w.deadLetters(t))
				for range 2 {
					if err := p.HandlePoison(t.Context(), poison(tt.body)); err != nil {
						t.Fatal(err)
					}
				}
				if p.Count(tt.fate) == 0 {
					t.Errorf("no delivery was %s", tt.fate)
				}
				dead := w.deadLetters(t)
				if tt.message == "" {
					if len(dead) != known {
						t.Errorf("%d dead letters, %d before", len(dead), known)
					}
					return
				}
				if len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, tt.message) || string(dead[0].OriginalMessage) != tt.body ||
					dead[0].DequeueCount != 8 || dead[0].OriginalQueue != testQueue || dead[0].DetectedReason != engine.ReasonPoison {
					t.Errorf("%+v", dead)
				}
			})
		})
	}
}

// While storage does not take the dead letter, a poison message goes back into its queue; nothing hides it for ever.
func TestPoisonWaitsForStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const queue = testQueue + engine.PoisonSuffix
		w := newWorld()
		w.prepare(t)
		d := engine.Delivery{Queue: queue, ID: "poison-1", Body: []byte(good), DequeueCount: 1, InsertedAt: time.Unix(1e9, 0)}
		for at := 1; at <= 4; at++ { // look among the dead letters, in the history, at the orchestration; write
			p := w.process(t, &faults.Plan{At: at, Fault: faults.Throttled})
			if err := p.HandlePoison(t.Context(), d); err != nil || p.Count(engine.Parked) != 1 {
				t.Fatalf("call %d: %v", at, err)
			}
			time.Sleep(time.Minute)
			messages, err := w.queues.Receive(t.Context(), queue, 2, visibility)
			if err != nil || len(messages) != 1 {
				t.Fatalf("call %d: %d messages are back, %v", at, len(messages), err)
			}
			d = engine.Delivery{Queue: queue, ID: messages[0].ID, Body: queues.Decode(messages[0].Text), DequeueCount: 1, InsertedAt: messages[0].InsertedAt}
			if err := w.queues.Delete(t.Context(), queue, messages[0].ID, messages[0].PopReceipt); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.process(t, nil).HandlePoison(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		dead := w.deadLetters(t)
		if len(dead) != 1 || string(dead[0].OriginalMessage) != good || dead[0].DequeueCount != 8 || dead[0].MessageID != "poison-1" {
			t.Errorf("%+v", dead)
		}
	})
}

// Every storage call on the way of a message fails in every way, and the process dies there where it can. Whatever
// happens: the run succeeds once, or the failing one is dead once, and the queue is empty.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	succeeded := func(t *testing.T, w *world) { t.Helper(); w.checkSucceeded(t, "c1") }
	once := func(w *world) error {
		if w.turns.Load() == 1 {
			return errors.New("jammed")
		}
		return nil
	}
	never := func(*world) error { return orchestrator.Permanent(errors.New("broken")) }
	scenarios := map[string]struct {
		body  string
		waits bool
		turn  func(w *world) error
		check func(t *testing.T, w *world)
	}{
		"succeeds":                 {good, false, func(*world) error { return nil }, succeeded},
		"fails once":               {good, false, once, succeeded},
		"fails for good":           {good, false, never, checkDead("broken")},
		"undecodable":              {"garbage", false, nil, checkDead("not a JSON object")},
		"waits":                    {good, true, func(*world) error { return nil }, succeeded},
		"waits and fails once":     {good, true, once, succeeded},
		"waits and fails for good": {good, true, never, checkDead("broken")},
	}
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, plan *faults.Plan) {
				w := newWorld()
				w.turn, w.waits = func(context.Context) error { return s.turn(w) }, s.waits
				w.prepare(t)
				w.send(t, s.body)
				if s.waits {
					w.event(t, "c1", time.Minute)
				}
				p := w.process(t, plan)
				w.host(t, func(int) *engine.Pipeline {
					if plan.Crashed() {
						p = w.process(t, nil)
					}
					return p
				})
				s.check(t, w)
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

func checkDead(message string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		dead := w.deadLetters(t)
		if len(dead) != 1 || !strings.Contains(dead[0].ErrorMessage, message) {
			t.Errorf("dead letters: %+v", dead)
		}
	}
}

func TestNewPipelineNamesEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	d := newWorld().definition()
	other := d
	other.Name = "roundabout"
	_, err := engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d, d, other, {}}, HostMaxDequeueCount: 5})
	for _, want := range []string{"runtime, history, dead letters and queues", "belongs to another engine", "set maxDequeueCount in host.json above 5",
		`its orchestrator is named "turntable"`, "the engine name is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
