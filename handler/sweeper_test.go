package handler

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// The timer wakes what is overdue, late or not, and leaves the work to who has the lock.
func TestSweeper(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		held  bool
		woken int
	}{"alone": {held: false, woken: 1}, "another is at work": {held: true, woken: 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				messages, log := queues.NewMemory(), slog.New(slog.DiscardHandler)
				nap := orchestrator.NewOrchestrator("nap", func(ctx *orchestrator.Context, _ int) (int, error) {
					return 0, ctx.Sleep(time.Hour)
				})
				store := tables.NewMemory()
				rt, err := orchestrator.New(orchestrator.Config{Tables: store, Blobs: blobs.NewMemory(), Queues: messages, Log: log,
					Orchestrators: []orchestrator.AnyOrchestrator{nap}})
				testenv.Check(t, err)
				list, err := catalog.New(catalog.Config{Tables: store, Runtime: func() *orchestrator.Runtime { return rt }})
				testenv.Check(t, err)
				s := sweeper{runtime: rt, list: list, locks: hostlock.Locks{Tables: store}, log: log}
				for _, prepare := range []func(context.Context) error{rt.Prepare, list.Prepare, s.locks.CreateTable} {
					testenv.Check(t, prepare(t.Context()))
				}
				if out, err := rt.Run(t.Context(), orchestrator.Start{ID: "a", Orchestrator: "nap", Input: []byte("1")}); err != nil || !out.Woken {
					t.Fatalf("%+v %v", out, err)
				}
				time.Sleep(2 * time.Hour)
				if tt.held {
					testenv.Done(t)(s.locks.Acquire(t.Context(), sweeperJob, time.Minute))
				}
				for range 2 { // what is woken is not woken again
					testenv.Check(t, s.handle(t.Context(), trigger.TimerDelivery{IsPastDue: true}))
				}
				if n, err := messages.Length(t.Context(), rt.SignalQueue()); err != nil || n != tt.woken {
					t.Errorf("%d signals, %v", n, err)
				}
				// It has repaired the list, too, which had not heard of the orchestration.
				if all, _, err := list.List(t.Context(), orchestrator.Filter{}, 10, ""); err != nil || len(all) != tt.woken {
					t.Errorf("%+v %v", all, err)
				}
			})
		})
	}
}
