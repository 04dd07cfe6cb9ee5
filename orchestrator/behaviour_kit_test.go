package orchestrator

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// everyFault runs a flow without a fault, to count its storage calls, and then once for each call and each kind of
// fault. The flow gives the plan to its first process.
func everyFault(t *testing.T, flow func(t *testing.T, plan *faults.Plan)) {
	t.Helper()
	counted := &faults.Plan{}
	synctest.Test(t, func(t *testing.T) { flow(t, counted) })
	if len(counted.Calls()) == 0 {
		t.Fatal("the flow makes no storage call")
	}
	for at := range counted.Calls() {
		for _, fault := range faults.Faults() {
			inSample(t, fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) {
				plan := &faults.Plan{At: at + 1, Fault: fault}
				defer plan.Wait() // for calls that storage carries out after the caller has left
				flow(t, plan)
			})
		}
	}
}

// intercepted is a runtime with queues that makes all storage calls through i.
func (w *world) intercepted(t *testing.T, i faults.Interceptor, c Config) *Runtime {
	t.Helper()
	c.Tables, c.Blobs, c.Queues = faults.Tables(w.tables, i), faults.Blobs(w.blobs, i), faults.Queues(w.queues, i)
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	rt := must(New(c))(t)
	return rt
}

// atApply is an Interceptor that calls do before the nth Apply (from 1) reaches storage.
func atApply(n int, do func()) faults.Interceptor {
	seen := 0 // the Applies of one orchestration follow each other
	return func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Apply" {
			if seen++; seen == n {
				do()
			}
		}
		return next(ctx)
	}
}

// rows returns all rows of an orchestration, entity tags included: two results differ after any write.
func (w *world) rows(t *testing.T, id string) []tables.Entity {
	t.Helper()
	var all []tables.Entity
	for e, err := range tables.All(t.Context(), w.tables, "orchestrations", tables.Query{Partition: tables.EscapeKey(id)}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// unchanged checks that nothing was written since before was read.
func (w *world) unchanged(t *testing.T, id string, before []tables.Entity) {
	t.Helper()
	versions := func(rows []tables.Entity) []string {
		var all []string
		for _, e := range rows {
			all = append(all, e.Row+" "+e.ETag)
		}
		return all
	}
	if diff := cmp.Diff(versions(before), versions(w.rows(t, id))); diff != "" {
		t.Errorf("the storage of %s has changed (-before +after):\n%s", id, diff)
	}
}

func (w *world) status(t *testing.T, id string) tables.Entity {
	t.Helper()
	return w.row(t, id, statusRow)
}

func (w *world) row(t *testing.T, id, row string) tables.Entity {
	t.Helper()
	e := must(w.tables.Get(t.Context(), "orchestrations", tables.Key{Partition: tables.EscapeKey(id), Row: row}))(t)
	return e
}

func (w *world) apply(t *testing.T, op tables.Op) {
	t.Helper()
	noError(t, w.tables.Apply(t.Context(), "orchestrations", op))
}

// waitingMessages returns the number of messages in the signal queue, hidden ones included.
func (w *world) waitingMessages(t *testing.T) int {
	t.Helper()
	n := must(w.queues.Length(t.Context(), signalQueue))(t)
	return n
}

// receive takes the next visible signal and leaves it in the queue.
func (w *world) receive(t *testing.T, visibility time.Duration) (Signal, queues.Message, bool) {
	t.Helper()
	messages := must(w.queues.Receive(t.Context(), signalQueue, 1, visibility))(t)
	if len(messages) == 0 {
		return Signal{}, queues.Message{}, false
	}
	s := must(DecodeSignal(queues.Decode(messages[0].Text)))(t)
	return s, messages[0], true
}

// eventSignal returns an event that others raise.
func eventSignal(id, signal, name, data string) Signal {
	return Signal{SignalID: signal, InstanceID: id, RuntimeProvider: provider, Type: ExternalSignal, Payload: Payload{Event: name, Data: []byte(data)}}
}

// learnedEvents counts the events of a kind that the rounds of an orchestration hold.
func (w *world) learnedEvents(t *testing.T, id string, kind eventKind) int {
	t.Helper()
	n := 0
	for _, g := range w.stored(t, id) {
		for _, r := range g.rounds {
			for _, e := range r.Learned {
				if e.Kind == kind {
					n++
				}
			}
		}
	}
	return n
}

// stepThenEvent calls a step, waits for the event "number", and calls the step with it.
func stepThenEvent(step *Activity[int, int]) *Orchestrator[int, int] {
	return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		if _, err := step.Call(ctx, n).Await(); err != nil {
			return 0, err
		}
		v, err := Event[int](ctx, "number").Await()
		if err != nil {
			return 0, err
		}
		return step.Call(ctx, v).Await()
	})
}

// stepThenTimer calls a step, sleeps, and calls the step again.
func stepThenTimer(step *Activity[int, int], d time.Duration) *Orchestrator[int, int] {
	return NewOrchestrator("test", func(ctx *Context, n int) (int, error) {
		v, err := step.Call(ctx, n).Await()
		if err != nil {
			return 0, err
		}
		_ = ctx.Sleep(d)
		return step.Call(ctx, v).Await()
	})
}

// numberLoop reads one event per execution, and returns all of them when it has read enough.
func numberLoop(enough int) *Orchestrator[[]int, []int] {
	return NewOrchestrator("test", func(ctx *Context, got []int) ([]int, error) {
		v, err := Event[int](ctx, "number").Await()
		if err != nil {
			return nil, err
		}
		if got = append(got, v); len(got) < enough {
			return nil, ContinueAsNew(got)
		}
		return got, nil
	})
}

// runUntilRest repeats a start as a host does, until others continue the orchestration or it has ended.
func runUntilRest(t *testing.T, rt *Runtime, s Start) Outcome {
	t.Helper()
	for range 10 {
		if out, err := rt.Run(t.Context(), s); err == nil && (out.Ended() || out.Woken) {
			return out
		}
	}
	t.Fatal("the start does not come to rest")
	return Outcome{}
}

// ran is the result of a Run in a goroutine.
type ran struct {
	out Outcome
	err error
}

func runInBackground(ctx context.Context, rt *Runtime, s Start) <-chan ran {
	done := make(chan ran, 1)
	go func() {
		out, err := rt.Run(ctx, s)
		done <- ran{out, err}
	}()
	return done
}

// overtaken runs a sequence of two steps in a process that pauses before its nth commit reaches storage, and lets
// another process complete it meanwhile. It returns the first process, and the result of its Run after the pause. In
// each case the first process has written nothing, and every result and decision exists once. Every caller runs under
// synctest.
func overtaken(t *testing.T, w *world, l *ledger, n int, paused time.Duration, log *slog.Logger) (slow *Runtime, got ran) {
	t.Helper()
	step := l.step("step")
	o := sequence(step)
	reached, goOn := make(chan struct{}), make(chan struct{})
	slow = w.intercepted(t, atApply(n, func() { close(reached); <-goOn }), Config{Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{step}, Log: log})
	done := runInBackground(t.Context(), slow, startOf("a", 2))
	<-reached
	time.Sleep(paused)
	if out := mustRun(t, w.process(t, nil, o, step), startOf("a", 2)); out.Status != Completed {
		t.Fatalf("the second process: %+v", out)
	}
	before := w.rows(t, "a")
	close(goOn)
	got = <-done
	w.unchanged(t, "a", before)
	w.onceEach(t, "a")
	if got.err == nil && (got.out.Status != Completed || string(got.out.Output) != "2") {
		t.Errorf("a process that was overtaken before commit %d gives %s %s", n, got.out.Status, got.out.Output)
	}
	return slow, got
}

// onceEach checks that the rounds of an orchestration hold each call and each result of a call once.
func (w *world) onceEach(t *testing.T, id string) {
	t.Helper()
	for _, g := range w.stored(t, id) {
		made, ended := map[int]bool{}, map[int]bool{}
		for i, r := range g.rounds {
			for _, e := range r.Decided {
				if e.Task != 0 && e.Kind != callCanceled && made[e.Task] {
					t.Errorf("execution %d, round %d: call %d is made again", g.number, i+1, e.Task)
				}
				made[e.Task] = true
			}
			for _, e := range r.Learned {
				switch e.Kind {
				case activityCompleted, activityFailed, timerFired, childCompleted, childFailed:
					if ended[e.Task] {
						t.Errorf("execution %d, round %d: call %d has another result", g.number, i+1, e.Task)
					}
					ended[e.Task] = true
				}
			}
		}
	}
}
