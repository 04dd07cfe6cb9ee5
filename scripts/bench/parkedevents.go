package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/direct"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// historyBefore is the number of events in the parked orchestration's history when the first letter arrives.
	historyBefore = 2000
	// letters is the number of letters in the process that has the orchestration, and visitors the number in as many
	// new processes.
	letters  = 100
	visitors = 10
)

// mailbox runs its history's activities, then takes events for ever.
func mailbox(step *orchestrator.Activity[int, int]) *orchestrator.Orchestrator[string, string] {
	return orchestrator.NewOrchestrator("mailbox", func(ctx *orchestrator.Context, event string) (string, error) {
		always := func(int) *orchestrator.Activity[int, int] { return step }
		if _, err := sequence(ctx, historyBefore/2, always); err != nil {
			return "", err
		}
		for {
			if _, err := orchestrator.Event[string](ctx, event).Await(); err != nil {
				return "", err
			}
		}
	})
}

// parkedEvents measures the cost of an event for a parked orchestration with a history.
func parkedEvents() scenario {
	name := func(what string) string { return fmt.Sprintf("events/parked/%d/%s", historyBefore, what) }
	metrics := []metric{
		{name("ms"), "ms", "goal 0.2 or less: in the process that last had it"},
		{name("elsewhere_ms"), "ms", "in a process that knows nothing of it"},
		{name("tx"), "transactions", "goal 5 or less, by the queue: from the event that is raised to its message that is deleted, in a process that knows nothing of it"},
	}
	for _, p := range eventParts() {
		metrics = append(metrics, metric{name("tx/" + p.name), "transactions", p.note})
	}
	metrics = append(metrics, metric{name("direct/tx"), "transactions", "goal 5 or less: the same, by the process that accepts the event, which knows nothing of it either"})
	for _, p := range eventParts() {
		metrics = append(metrics, metric{name("direct/tx/" + p.name), "transactions", p.note})
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		w := newWaitingRoom()
		defer w.close()
		w.cached = 50_000
		runtime, err := w.start(ctx, "mailbox", "letter")
		if err != nil {
			return nil, err
		}
		sent := 0
		same := func() (*orchestrator.Runtime, error) { return runtime, nil }
		here, err := w.letters(ctx, letters, &sent, same)
		if err != nil {
			return nil, err
		}
		elsewhere, err := w.letters(ctx, visitors, &sent, w.process)
		if err != nil {
			return nil, err
		}
		byQueue, err := w.raised(ctx, w.byQueue)
		if err != nil {
			return nil, err
		}
		direct, err := w.raised(ctx, w.byAcceptor)
		return slices.Concat([]float64{here / 1000, elsewhere / 1000}, byQueue, direct), err
	}}
}

// eventPart is a part of an event's cost, by operation.
type eventPart struct{ name, operation, note string }

func eventParts() []eventPart {
	return []eventPart{
		{"put", "Send", ""}, {"get", "Receive", "falls away where the process that accepts an event takes it"},
		{"query", "Query", fmt.Sprintf("two pages of 1,000 rows hold a history of %d events", historyBefore)},
		{"commit", "Apply", ""}, {"delete", "Delete", ""},
	}
}

// raised counts the cost of an event, in total and by part. Other costs are in the sum alone.
func (w *waitingRoom) raised(ctx context.Context, raise func(context.Context) error) ([]float64, error) {
	before := len(w.count.Calls())
	if err := raise(ctx); err != nil {
		return nil, err
	}
	calls := w.count.Calls()[before:]
	values := []float64{float64(len(calls))}
	for _, p := range eventParts() {
		n := 0
		for _, c := range calls {
			if strings.HasPrefix(c.Operation, p.operation) {
				n++
			}
		}
		values = append(values, float64(n))
	}
	return values, nil
}

// byQueue lets another process receive the event than the one that accepts it.
func (w *waitingRoom) byQueue(ctx context.Context) error {
	runtime, err := w.process()
	if err != nil {
		return err
	}
	if err := runtime.Raise(ctx, "a", "letter", "data", ""); err != nil {
		return err
	}
	return w.signal(ctx, runtime.SignalQueue(), orchestrator.Running)
}

// byAcceptor lets the process that accepts an event handle it, as the handler does.
func (w *waitingRoom) byAcceptor(ctx context.Context) error {
	store := direct.New(direct.Config{Queues: faults.Queues(w.queues, w.count.Intercept)})
	defer store.Close()
	runtime, err := w.processOver(store)
	if err != nil {
		return err
	}
	taken := make(chan error, 1)
	store.Serve(runtime.SignalQueue(), func(ctx context.Context, d engine.Delivery, _ func(context.Context, time.Duration) error) error {
		s, err := orchestrator.DecodeSignal(d.Body)
		if err == nil {
			var out orchestrator.Outcome
			if out, err = runtime.Deliver(ctx, s); err == nil && out.Rounds != 1 {
				err = fmt.Errorf("the event made %d rounds: %+v", out.Rounds, out)
			}
		}
		taken <- err
		return err
	})
	if err := runtime.Raise(ctx, "a", "letter", "data", ""); err != nil {
		return err
	}
	select {
	case err := <-taken:
		store.Close() // which waits until the message is deleted
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// letters delivers n events, one after the other, each to its given process, and returns the median time until the
// orchestration was parked again, in microseconds.
func (w *waitingRoom) letters(ctx context.Context, n int, sent *int, process func() (*orchestrator.Runtime, error)) (float64, error) {
	var us []float64
	for range n {
		*sent++
		runtime, err := process()
		if err != nil {
			return 0, err
		}
		began := time.Now()
		out, err := runtime.Deliver(ctx, orchestrator.Signal{SignalID: strconv.Itoa(*sent), InstanceID: "a", RuntimeProvider: "roundhouse",
			Type: orchestrator.ExternalSignal, Payload: orchestrator.Payload{Event: "letter", Data: []byte(`""`)}})
		if err != nil {
			return 0, err
		}
		if out.Status != orchestrator.Running || out.Rounds != 1 {
			return 0, fmt.Errorf("letter %d: the orchestration is %s after %d rounds", *sent, out.Status, out.Rounds)
		}
		us = append(us, micros(time.Since(began)))
	}
	return median([][]float64{us}), nil
}
