package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// costRig is a runtime on memory with empty activities, so that only the runtime is measured.
type costRig struct {
	runtime *Runtime
	started atomic.Int64
}

func newCostRig(tb testing.TB) *costRig {
	tb.Helper()
	step := NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	sequence := NewOrchestrator("sequence", func(ctx *Context, n int) (int, error) {
		sum := 0
		for range n {
			var err error
			if sum, err = step.Call(ctx, sum).Await(); err != nil {
				return 0, err
			}
		}
		return sum, nil
	})
	fanout := NewOrchestrator("fanout", func(ctx *Context, n int) (int, error) {
		futures := make([]*Future[int], n)
		for i := range futures {
			futures[i] = step.Call(ctx, 0)
		}
		results, err := All(futures...)
		return len(results), err
	})
	runtime, err := New(Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory(), Log: slog.New(slog.DiscardHandler),
		Orchestrators: []AnyOrchestrator{sequence, fanout}, Activities: []AnyActivity{step}})
	if err != nil {
		tb.Fatal(err)
	}
	if err := runtime.Prepare(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return &costRig{runtime: runtime}
}

// run runs an orchestration of n activities to its end.
func (r *costRig) run(ctx context.Context, name string, n int) error {
	id := name + "-" + strconv.FormatInt(r.started.Add(1), 10)
	out, err := r.runtime.Run(ctx, Start{ID: id, Orchestrator: name, Input: []byte(strconv.Itoa(n))})
	if err == nil && (out.Status != Completed || string(out.Output) != strconv.Itoa(n)) {
		err = fmt.Errorf("orchestration %s is %s with output %.64s", id, out.Status, out.Output)
	}
	return err
}

// BenchmarkDrive drives orchestrations with empty activities.
func BenchmarkDrive(b *testing.B) {
	for _, c := range []struct {
		name          string
		n, concurrent int
	}{
		{"sequence", 1, 1}, {"sequence", 3, 1}, {"sequence", 3, 10}, {"sequence", 3, 100}, {"sequence", 1000, 1},
		{"fanout", 100, 1}, {"fanout", 1000, 1},
	} {
		b.Run(fmt.Sprintf("%s/%d/%d", c.name, c.n, c.concurrent), func(b *testing.B) {
			b.ReportAllocs()
			r := newCostRig(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			for range c.concurrent {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						if err := r.run(b.Context(), c.name, c.n); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.n), "ns/activity")
		})
	}
}

// TestCost bounds the allocations for driving an orchestration. The bounds leave room for a few; a change that exceeds
// them makes every orchestration more expensive.
func TestCost(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector allocates, too")
	}
	r := newCostRig(t)
	of := func(n int) float64 {
		return testing.AllocsPerRun(20, func() {
			if err := r.run(t.Context(), "sequence", n); err != nil {
				t.Error(err)
			}
		})
	}
	three, many := of(3), of(103)
	if most := 126.0; three > most {
		t.Errorf("an orchestration of 3 activities takes %v allocations, at most %v are allowed", three, most)
	}
	if each, most := (many-three)/100, 26.0; each > most {
		t.Errorf("an activity in a sequence takes %v allocations, at most %v are allowed", each, most)
	}
}
