package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// parkedCount is the number of parked orchestrations; it makes constant costs negligible.
const parkedCount = 5000

// parked measures a process's memory for a parked orchestration.
func parked() scenario {
	return scenario{[]metric{{"memory/parked/bytes", "bytes", "goal 0, within some bytes of noise"}}, func(ctx context.Context, d time.Duration) ([]float64, error) {
		samples, err := repeat(ctx, d, func(ctx context.Context, _ time.Duration) ([]float64, error) {
			grown, err := park(ctx, parkedCount)
			return []float64{float64(grown) / parkedCount}, err
		})
		if err != nil {
			return nil, err
		}
		return []float64{max(0, median(samples))}, nil // a negative value is noise
	}}
}

// lostTables is a store that can drop the one behind it.
type lostTables struct{ tables.Store }

// park parks n orchestrations and returns by how many bytes heap and stacks have grown. The store is dropped before
// the second measurement, so its rows do not count; the runtime exists at both, and leaked goroutines would count.
func park(ctx context.Context, n int) (int64, error) {
	store := &lostTables{tables.NewMemory()}
	r, err := parkingRuntime(ctx, store)
	if err != nil {
		return 0, err
	}
	// The remaining time is shorter than the wait for the next attempt, so Run parks immediately.
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	before := inUse()
	for i := range n {
		out, err := r.Run(ctx, orchestrator.Start{ID: "parked-" + strconv.Itoa(i), Orchestrator: "parked", Input: []byte("0")})
		if err != nil {
			return 0, err
		}
		if out.Status != orchestrator.Running || out.ResumeAt.IsZero() {
			return 0, fmt.Errorf("orchestration %s did not park, it is %s", out.ID, out.Status)
		}
	}
	store.Store = nil
	grown := inUse() - before
	runtime.KeepAlive(r)
	return grown, nil
}

// parkingRuntime runs orchestrations whose only activity fails and has to wait long for its next attempt.
func parkingRuntime(ctx context.Context, store tables.Store) (*orchestrator.Runtime, error) {
	busy := orchestrator.NewActivity("busy", func(context.Context, int) (int, error) { return 0, errors.New("busy") },
		orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 2, FirstInterval: 24 * time.Hour, MaxInterval: 24 * time.Hour}))
	r, err := orchestrator.New(orchestrator.Config{Tables: store, Blobs: blobs.NewMemory(), Log: slog.New(slog.DiscardHandler),
		Activities: []orchestrator.AnyActivity{busy},
		Orchestrators: []orchestrator.AnyOrchestrator{orchestrator.NewOrchestrator("parked", func(ctx *orchestrator.Context, n int) (int, error) {
			return busy.Call(ctx, n).Await()
		})}})
	if err != nil {
		return nil, err
	}
	return r, r.Prepare(ctx)
}

// inUse returns the memory of heap and stacks after garbage collection.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // pools keep their content for one more collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
