package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// historyBefore is how many events the history of the parked orchestration has when the first letter comes.
	historyBefore = 2000
	// letters is how many come in the process that has the orchestration, and in as many new processes as visitors.
	letters  = 100
	visitors = 10
)

// mailbox works through its history's activities, then takes events for ever.
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

// parkedEvents measures what an event costs whose orchestration is parked and has a history.
func parkedEvents() scenario {
	name := func(what string) string { return fmt.Sprintf("events/parked/%d/%s", historyBefore, what) }
	metrics := []metric{
		{name("ms"), "ms", "goal 0.2 or less: in the process that last had it"},
		{name("elsewhere_ms"), "ms", "in a process that knows nothing of it"},
		{name("tx"), "transactions", "goal 5 or less: from the event that is raised to its message that is deleted, in a process that knows nothing of it"},
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
		if runtime, err = w.process(); err != nil {
			return nil, err
		}
		before := len(w.count.Calls())
		if err := runtime.Raise(ctx, "a", "letter", "data", ""); err != nil {
			return nil, err
		}
		err = w.signal(ctx, runtime.SignalQueue(), orchestrator.Running)
		return []float64{here / 1000, elsewhere / 1000, float64(len(w.count.Calls()) - before)}, err
	}}
}

// letters delivers n events, one after the other, each to the process that it is given, and gives the median of how long
// it took until the orchestration was parked again, in microseconds.
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
