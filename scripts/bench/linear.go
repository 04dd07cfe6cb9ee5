package main

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// linearUnits is the number of measured units at each size, in as many orchestrations of that size as needed, so that
// each size has the same share of garbage collection.
const linearUnits = 50_000

// linearSizes returns the numbers of units of an orchestration that are compared.
func linearSizes() []int { return []int{500, 5000, linearUnits} }

// growths lists the shapes of orchestrations whose cost for each unit should not grow with the number of units.
func growths() []struct {
	name string
	make func(n int) *cutOff
} {
	return []struct {
		name string
		make func(n int) *cutOff
	}{
		{"fanout", func(n int) *cutOff { return newCutOff(n, fannedOut) }},
		{"sequence", func(n int) *cutOff { return newCutOff(n, calls) }},
		{"buffered", bufferedEvents},
		{"coroutines", func(n int) *cutOff { return newCutOff(n, coroutines) }},
		{"delivered", deliveredEvents},
	}
}

// linears measures the cost of a unit in a run, and in its replay by a new process, at each size. It is processor
// time, which does not grow when a unit waits for other programs.
func linears() []scenario {
	var all []scenario
	for _, g := range growths() {
		var metrics []metric
		for _, kind := range []string{"run", "replay"} {
			for _, n := range linearSizes() {
				metrics = append(metrics, metric{fmt.Sprintf("linear/%s/%s/%d", kind, g.name, n), "us CPU/unit", ""})
			}
			metrics = append(metrics, metric{fmt.Sprintf("linear/%s/%s/ratio", kind, g.name), "ratio", "goal 1.5 or less: a unit of the largest, divided by one of the smallest"})
		}
		all = append(all, scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
			var run, replay []float64
			for _, n := range linearSizes() {
				r, p, err := linear(ctx, n, linearUnits/n, g.make)
				if err != nil {
					return nil, fmt.Errorf("%d units: %w", n, err)
				}
				run, replay = append(run, r), append(replay, p)
			}
			last := len(run) - 1
			return append(append(run, run[last]/run[0]), append(replay, replay[last]/replay[0])...), nil
		}})
	}
	return all
}

// linear returns the time of a unit in the runs and in the replays of so many orchestrations of n units, in
// microseconds.
func linear(ctx context.Context, n, orchestrations int, make func(int) *cutOff) (run, replay float64, err error) {
	for range orchestrations {
		c := make(n)
		c.clock = processorTime
		ran, err := c.live(ctx)
		if err != nil {
			return 0, 0, err
		}
		replayed, err := c.replay(ctx)
		if err != nil {
			return 0, 0, err
		}
		run, replay = run+micros(ran), replay+micros(replayed)
	}
	units := float64(n * orchestrations)
	return run / units, replay / units, nil
}

// processorTime returns this process's processor time.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// coroutines calls each activity but the last in a coroutine of its own.
func coroutines(ctx *orchestrator.Context, n int, step, _, last *orchestrator.Activity[int, int]) (int, error) {
	futures := make([]*orchestrator.Future[int], n-1)
	for i := range futures {
		futures[i] = orchestrator.Go(ctx, func(ctx *orchestrator.Context) (int, error) { return step.Call(ctx, i).Await() })
	}
	if _, err := orchestrator.All(futures...); err != nil {
		return 0, err
	}
	return last.Call(ctx, n).Await()
}

// bufferedEvents takes n events one by one, all of which arrived while an activity ran. Its run is timed from there.
func bufferedEvents(n int) *cutOff {
	return receiving(n, true, func(ctx *orchestrator.Context, n int, _, wait, last *orchestrator.Activity[int, int]) (int, error) {
		if _, err := wait.Call(ctx, n).Await(); err != nil {
			return 0, err
		}
		if err := take(ctx, n); err != nil {
			return 0, err
		}
		return last.Call(ctx, n).Await()
	})
}

// deliveredEvents waits for n events that arrive while it runs.
func deliveredEvents(n int) *cutOff {
	return receiving(n, false, func(ctx *orchestrator.Context, n int, _, wait, last *orchestrator.Activity[int, int]) (int, error) {
		wait.Call(ctx, n) // while it runs, the orchestration is not parked
		if err := take(ctx, n); err != nil {
			return 0, err
		}
		return last.Call(ctx, n).Await()
	})
}

func take(ctx *orchestrator.Context, n int) error {
	for range n {
		if _, err := orchestrator.Event[int](ctx, "event").Await(); err != nil {
			return err
		}
	}
	return nil
}

// receiving returns an orchestration that is delivered n events while its activity wait runs. With all, that ends
// when they are all in its history, and the run is timed from there; otherwise it ends with the process.
func receiving(n int, all bool, code code) *cutOff {
	c := newCutOff(n, code)
	c.calls = n + 2
	delivered := false
	c.before = func(ctx context.Context, runtime *orchestrator.Runtime) error {
		if !delivered {
			c.deliver(ctx, runtime, n)
		}
		delivered = true
		if !all {
			<-ctx.Done()
			return ctx.Err()
		}
		err := arrived(ctx, runtime, n)
		c.timedFrom = c.clock()
		return err
	}
	return c
}

// deliver starts delivering n events in parallel. Each delivery lasts as long as the process.
func (c *cutOff) deliver(ctx context.Context, runtime *orchestrator.Runtime, n int) {
	for i := range n {
		c.deliveries.Go(func() {
			_, _ = runtime.Deliver(ctx, orchestrator.Signal{SignalID: strconv.Itoa(i), InstanceID: cutOffID, RuntimeProvider: "roundhouse", Type: orchestrator.ExternalSignal,
				Payload: orchestrator.Payload{Event: "event", Data: []byte("1")}})
		})
	}
}

// arrived waits until the orchestration has been given n events.
func arrived(ctx context.Context, runtime *orchestrator.Runtime, n int) error {
	for {
		if came, err := raised(ctx, runtime); err != nil || came == n {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
