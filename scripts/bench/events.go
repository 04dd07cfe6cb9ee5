package main

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// buffered is the number of events that arrive before the orchestration waits for one.
const buffered = 10_000

// events times how long a new process takes to replay an orchestration that has read many buffered events.
// memory/replay/10000 has about half as many results.
func events() scenario {
	return scenario{[]metric{{"events/10000/us_per_event", "us", "as one of the 5,000 results of memory/replay/10000"}}, func(ctx context.Context, d time.Duration) ([]float64, error) {
		c, err := newBuffered(ctx, buffered)
		if err != nil {
			return nil, err
		}
		us, err := c.median(ctx, d)
		return []float64{us / buffered}, err
	}}
}

// newBuffered returns an orchestration that has read n events, all of which arrived before its wait.
func newBuffered(ctx context.Context, n int) (*cutOff, error) {
	c := receiving(n, true, func(ctx *orchestrator.Context, n int, _, wait, last *orchestrator.Activity[int, int]) (int, error) {
		if _, err := wait.Call(ctx, n).Await(); err != nil {
			return 0, err
		}
		for range n {
			if _, ok, err := orchestrator.TryReceive[int](ctx, "event"); err != nil || !ok {
				return 0, errors.Join(err, errors.New("an event is missing"))
			}
		}
		return last.Call(ctx, n).Await()
	})
	return c, c.begin(ctx)
}

// raised returns the number of events in the orchestration's history.
func raised(ctx context.Context, runtime *orchestrator.Runtime) (int, error) {
	n := 0
	for next, more := "", true; more; more = next != "" {
		rounds, then, err := runtime.Rounds(ctx, cutOffID, 1000, next)
		if err != nil {
			return 0, err
		}
		for _, r := range rounds {
			for _, e := range r.Learned {
				if e.Kind == "EventRaised" {
					n++
				}
			}
		}
		next = then
	}
	return n, nil
}
