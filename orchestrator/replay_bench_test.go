package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/tables"
)

// replayedCalls makes a history of 10,000 events: a start, calls and results, and a wait for an event.
const replayedCalls = 4999

// BenchmarkReplay measures what a process that knows nothing does until an orchestration waits again where it was.
func BenchmarkReplay(b *testing.B) {
	step := NewActivity("step", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	for name, calls := range map[string]func(*Context) error{
		"sequence": func(ctx *Context) error {
			for i := range replayedCalls {
				if _, err := step.Call(ctx, i).Await(); err != nil {
					return err
				}
			}
			return nil
		},
		"fan-out": func(ctx *Context) error {
			all := make([]*Future[int], replayedCalls)
			for i := range all {
				all[i] = step.Call(ctx, i)
			}
			_, err := All(all...)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			o := NewOrchestrator("test", func(ctx *Context, _ int) (int, error) {
				if err := calls(ctx); err != nil {
					return 0, err
				}
				return Event[int](ctx, "go").Await()
			})
			c := Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory(), Log: slog.New(slog.DiscardHandler),
				Orchestrators: []AnyOrchestrator{o}, Activities: []AnyActivity{step}}
			run := func(resume bool) {
				rt, err := New(c)
				if err == nil && !resume {
					err = rt.Prepare(b.Context())
				}
				if err != nil {
					b.Fatal(err)
				}
				out, err := rt.Run(b.Context(), Start{ID: "a", Orchestrator: "test", Input: json.RawMessage("1"), Resume: resume})
				if err != nil || len(out.Calls) != replayedCalls+1 || resume == (out.Rounds > 0) {
					b.Fatal(len(out.Calls), out.Rounds, errors.Join(err, errors.New(string(out.Status))))
				}
			}
			run(false)
			b.ReportAllocs()
			for b.Loop() {
				run(true)
			}
		})
	}
}
