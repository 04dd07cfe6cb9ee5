package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// replayable makes the history of an orchestration that waits for an event after n calls: 2n+2 events. The returned
// function replays it in a process without state, until the orchestration waits again at the same place.
func replayable(tb testing.TB, n int, calls func(ctx *Context, step *Activity[int, int], n int) error) func() {
	tb.Helper()
	step := NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
		if err := calls(ctx, step, n); err != nil {
			return 0, err
		}
		return Event[int](ctx, "go").Await()
	})
	c := Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory(), Log: slog.New(slog.DiscardHandler),
		Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{step}}
	run := func(resume bool) {
		tb.Helper()
		rt, err := New(c)
		if err == nil && !resume {
			err = rt.Prepare(tb.Context())
		}
		if err != nil {
			tb.Fatal(err)
		}
		out, err := rt.Run(tb.Context(), Start{ID: "a", Orchestrator: "test", Input: json.RawMessage("1"), Resume: resume})
		if err != nil || len(out.Calls) != n+1 || resume == (out.Rounds > 0) {
			tb.Fatal(errors.Join(err, fmt.Errorf("%s with %d calls and %d new rounds", out.Status, len(out.Calls), out.Rounds)))
		}
	}
	run(false)
	return func() {
		tb.Helper()
		run(true)
	}
}

func callsInSequence(ctx *Context, step *Activity[int, int], n int) error {
	for i := range n {
		if _, err := step.Call(ctx, i).Await(); err != nil {
			return err
		}
	}
	return nil
}

func callsAtOnce(ctx *Context, step *Activity[int, int], n int) error {
	all := make([]*Future[int], n)
	for i := range all {
		all[i] = step.Call(ctx, i)
	}
	_, err := All(all...)
	return err
}

// BenchmarkReplay replays 10,000 events.
func BenchmarkReplay(b *testing.B) {
	for name, calls := range map[string]func(*Context, *Activity[int, int], int) error{"sequence": callsInSequence, "fan-out": callsAtOnce} {
		b.Run(name, func(b *testing.B) {
			replay := replayable(b, 4999, calls)
			b.ReportAllocs()
			for b.Loop() {
				replay()
			}
		})
	}
}

// raceDetector reports whether the test binary was built with -race.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// A replay costs as much as its events, and each takes few allocations: a process that takes over pays this cost.
func TestReplayTakesFewAllocations(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector allocates, too")
	}
	for name, c := range map[string]struct {
		calls func(*Context, *Activity[int, int], int) error
		most  float64 // per event, and the fixed part of a run
	}{
		"in sequence": {callsInSequence, 6},
		"at once":     {callsAtOnce, 4},
	} {
		const n = 1000
		if got := testing.AllocsPerRun(3, replayable(t, n, c.calls)) / (2 * n); got > c.most {
			t.Errorf("%s: %.1f allocations an event, more than %.0f", name, got, c.most)
		}
	}
}
