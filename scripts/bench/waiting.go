package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// The waits of a waiting room's orchestration, other than an event by its name.
const (
	nothing = ""
	anHour  = "an hour"
	aPerson = "a person"
)

// waitingRoom is a runtime whose orchestrations wait for signals, with an adjustable clock. Each process is a new
// one, so nothing is warm.
type waitingRoom struct {
	tables *tables.Memory
	blobs  *blobs.Memory
	queues *queues.Memory
	ahead  time.Duration
	count  *faults.Plan
	cached int // cached events of its processes; close them then
	open   []*orchestrator.Runtime
}

func newWaitingRoom() *waitingRoom {
	w := &waitingRoom{tables: tables.NewMemory(), blobs: blobs.NewMemory(), queues: queues.NewMemory(), count: &faults.Plan{}}
	w.queues.Now = w.now
	return w
}

func (w *waitingRoom) now() time.Time { return time.Now().Add(w.ahead) }

func (w *waitingRoom) process() (*orchestrator.Runtime, error) {
	return w.processOver(faults.Queues(w.queues, w.count.Intercept))
}

// processOver returns a process that sends through a store of queues.
func (w *waitingRoom) processOver(sends queues.Store) (*orchestrator.Runtime, error) {
	wait := orchestrator.NewOrchestrator("wait", func(ctx *orchestrator.Context, what string) (string, error) {
		switch what {
		case nothing:
			return "", nil
		case anHour:
			return "", ctx.Sleep(time.Hour)
		case aPerson:
			return askClerk(ctx)
		default:
			return orchestrator.Event[string](ctx, what).Await()
		}
	})
	call := orchestrator.NewOrchestrator("call", func(ctx *orchestrator.Context, what string) (string, error) {
		return wait.Call(ctx, what).Await()
	})
	step := orchestrator.NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	rt, err := orchestrator.New(orchestrator.Config{Orchestrators: []orchestrator.AnyOrchestrator{wait, call, mailbox(step)},
		Activities: []orchestrator.AnyActivity{step}, CachedEvents: w.cached, Now: w.now, Log: slog.New(slog.DiscardHandler),
		Tables: faults.Tables(w.tables, w.count.Intercept), Blobs: faults.Blobs(w.blobs, w.count.Intercept), Queues: sends})
	if err == nil {
		w.open = append(w.open, rt)
	}
	return rt, err
}

func (w *waitingRoom) close() {
	for _, rt := range w.open {
		rt.Close()
	}
}

// start starts an orchestration that waits for nothing, for an hour, for a task or for an event, and counts from
// there.
func (w *waitingRoom) start(ctx context.Context, name, what string) (*orchestrator.Runtime, error) {
	rt, err := w.process()
	if err != nil {
		return nil, err
	}
	if err := rt.Prepare(ctx); err != nil {
		return nil, err
	}
	w.count = &faults.Plan{}
	if rt, err = w.process(); err != nil {
		return nil, err
	}
	out, err := rt.Run(ctx, orchestrator.Start{ID: "a", Orchestrator: name, Input: fmt.Appendf(nil, "%q", what), CorrelationID: "a"})
	if err == nil && (out.Status == orchestrator.Completed) != (what == nothing) {
		err = fmt.Errorf("the orchestration did not do what it was started for: %+v", out)
	}
	return rt, err
}

// signal delivers the one due signal of a queue to a new process, as the host does, and checks the resulting status
// of the orchestration.
func (w *waitingRoom) signal(ctx context.Context, name string, want orchestrator.Status) error {
	rt, err := w.process()
	if err != nil {
		return err
	}
	queue := faults.Queues(w.queues, w.count.Intercept)
	received, err := queue.Receive(ctx, name, 1, time.Minute)
	if err != nil || len(received) != 1 {
		return errors.Join(err, fmt.Errorf("%d signals were received from %s", len(received), name))
	}
	s, err := orchestrator.DecodeSignal(queues.Decode(received[0].Text))
	if err != nil {
		return err
	}
	out, err := rt.Deliver(ctx, s)
	if err == nil && out.Status != want {
		err = fmt.Errorf("the orchestration is %s, and not %s: %+v", out.Status, want, out)
	}
	return errors.Join(err, queue.Delete(ctx, name, received[0].ID, received[0].PopReceipt))
}

// timer returns the total of timerTally.
func timer(ctx context.Context, _ *house) (int, error) {
	t, err := timerTally(ctx)
	return t.total(), err
}

// timerTally counts the cost of an orchestration that waits for an hour, from its start to its end, beyond one
// without a wait: all storage calls of a timer, including the sweeper's index.
func timerTally(ctx context.Context) (tally, error) {
	without := newWaitingRoom()
	if _, err := without.start(ctx, "wait", nothing); err != nil {
		return tally{}, err
	}
	w := newWaitingRoom()
	rt, err := w.start(ctx, "wait", anHour)
	if err != nil {
		return tally{}, err
	}
	w.ahead = 2 * time.Hour
	err = w.signal(ctx, rt.ScheduleQueue(), orchestrator.Completed)
	return tallied(w.count.Calls()).minus(tallied(without.count.Calls())), err
}

// event returns the total of eventTally.
func event(ctx context.Context, _ *house) (int, error) {
	t, err := eventTally(ctx)
	return t.total(), err
}

// eventTally counts the cost of waking a parked orchestration by an event.
func eventTally(ctx context.Context) (tally, error) {
	w := newWaitingRoom()
	rt, err := w.start(ctx, "wait", "go")
	if err != nil {
		return tally{}, err
	}
	before := len(w.count.Calls())
	if err := rt.Raise(ctx, "a", "go", "data", ""); err != nil {
		return tally{}, err
	}
	err = w.signal(ctx, rt.SignalQueue(), orchestrator.Completed)
	return tallied(w.count.Calls()[before:]), err
}
