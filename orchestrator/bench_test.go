package orchestrator

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// The memory store is what these run on: they show what the runtime costs by itself.

func benchRuntime(b *testing.B, o AnyOrchestrator, activities ...AnyActivity) *Runtime {
	b.Helper()
	rt, err := New(Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory(), Orchestrators: []AnyOrchestrator{o}, Activities: activities,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		b.Fatal(err)
	}
	if err := rt.Prepare(context.Background()); err != nil {
		b.Fatal(err)
	}
	return rt
}

func benchRun(b *testing.B, rt *Runtime, id string, n int) {
	out, err := rt.Run(context.Background(), startOf(id, n))
	if err != nil || out.Status != Completed {
		b.Fatal(out.Status, err)
	}
}

func BenchmarkSequence(b *testing.B) {
	for _, n := range []int{1, 3, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			step := NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
			rt := benchRuntime(b, sequence(step), step)
			for i := 0; b.Loop(); i++ {
				benchRun(b, rt, fmt.Sprint("o", i), n)
			}
		})
	}
}

func BenchmarkSequenceParallel(b *testing.B) {
	step := NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	rt := benchRuntime(b, sequence(step), step)
	var next atomic.Int64
	b.SetParallelism(50)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			benchRun(b, rt, fmt.Sprint("o", next.Add(1)), 3)
		}
	})
}

func BenchmarkFanOut(b *testing.B) {
	step := NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	rt := benchRuntime(b, fanOut(step), step)
	for i := 0; b.Loop(); i++ {
		benchRun(b, rt, fmt.Sprint("o", i), 1000)
	}
}
