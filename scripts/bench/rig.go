package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// rig is a runtime with the timed orchestrations. Their activities do nothing, so the runtime is timed.
type rig struct {
	runtime *orchestrator.Runtime
	started atomic.Int64
	trace   string // of its orchestrations
}

func newMemoryRig(ctx context.Context) (*rig, error) {
	return newRig(ctx, orchestrator.Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory()})
}

// newRig adds orchestrators, activities and a silent log to a configuration, and creates table and container.
func newRig(ctx context.Context, c orchestrator.Config) (*rig, error) {
	step := orchestrator.NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	always := func(int) *orchestrator.Activity[int, int] { return step }
	c.Log = slog.New(slog.DiscardHandler)
	c.Activities = []orchestrator.AnyActivity{step}
	c.Orchestrators = []orchestrator.AnyOrchestrator{
		orchestrator.NewOrchestrator("sequence", func(ctx *orchestrator.Context, n int) (int, error) { return sequence(ctx, n, always) }),
		orchestrator.NewOrchestrator("fanout", func(ctx *orchestrator.Context, n int) (int, error) { return fanOut(ctx, n, always) }),
	}
	runtime, err := orchestrator.New(c)
	if err != nil {
		return nil, err
	}
	return &rig{runtime: runtime}, runtime.Prepare(ctx)
}

// run runs a new orchestration of n activities to its end.
func (r *rig) run(ctx context.Context, name string, n int) error {
	id := name + "-" + strconv.FormatInt(r.started.Add(1), 10)
	out, err := r.runtime.Run(ctx, orchestrator.Start{ID: id, Orchestrator: name, Input: []byte(strconv.Itoa(n)), Trace: r.trace})
	if err != nil {
		return err
	}
	if out.Status != orchestrator.Completed || string(out.Output) != strconv.Itoa(n) {
		return fmt.Errorf("orchestration %s is %s with output %.64s", id, out.Status, out.Output)
	}
	return nil
}

// sequence calls n activities one after the other and returns n, if each adds 1.
func sequence(ctx *orchestrator.Context, n int, activity func(i int) *orchestrator.Activity[int, int]) (int, error) {
	sum := 0
	for i := range n {
		next, err := activity(i).Call(ctx, sum).Await()
		if err != nil {
			return 0, err
		}
		sum = next
	}
	return sum, nil
}

// fanOut calls n activities in parallel and returns n, if each adds 1.
func fanOut(ctx *orchestrator.Context, n int, activity func(i int) *orchestrator.Activity[int, int]) (int, error) {
	futures := make([]*orchestrator.Future[int], n)
	for i := range futures {
		futures[i] = activity(i).Call(ctx, 0)
	}
	results, err := orchestrator.All(futures...)
	sum := 0
	for _, r := range results {
		sum += r
	}
	return sum, err
}
