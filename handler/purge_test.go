package handler

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const day = 24 * time.Hour

// archive is orchestrations and their retention, on storage that a plan breaks for the retention only.
type archive struct {
	*purger
	healthy *orchestrator.Runtime
}

func newArchive(t *testing.T, intercept faults.Interceptor) archive {
	t.Helper()
	store, log := tables.NewMemory(), slog.New(slog.DiscardHandler)
	config := orchestrator.Config{Tables: store, Blobs: blobs.NewMemory(), Queues: queues.NewMemory(), Log: log,
		Orchestrators: []orchestrator.AnyOrchestrator{
			orchestrator.NewOrchestrator("done", func(*orchestrator.Context, int) (int, error) { return 0, nil }),
			orchestrator.NewOrchestrator("waits", func(ctx *orchestrator.Context, _ int) (int, error) {
				return 0, ctx.Sleep(365 * day)
			})}}
	healthy, err := orchestrator.New(config)
	testenv.Check(t, err)
	config.Tables = faults.Tables(store, intercept)
	rt, err := orchestrator.New(config)
	testenv.Check(t, err)
	r := &purger{runtime: rt, locks: hostlock.Locks{Tables: store}, log: log, now: time.Now, keep: 30 * day}
	for _, prepare := range []func(context.Context) error{healthy.Prepare, r.locks.CreateTable} {
		testenv.Check(t, prepare(t.Context()))
	}
	return archive{r, healthy}
}

func (a archive) add(t *testing.T, name string, n int) {
	t.Helper()
	for i := range n {
		start := orchestrator.Start{ID: fmt.Sprintf("%s%04d", name, i), Orchestrator: name, Input: []byte("1")}
		testenv.Done(t)(a.healthy.Run(t.Context(), start))
	}
}

func (a archive) left(t *testing.T) int {
	t.Helper()
	found, next, err := a.healthy.List(t.Context(), orchestrator.Filter{}, 1000, "")
	if err != nil || next != "" {
		t.Fatal(next, err)
	}
	return len(found)
}

func untouched(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	return next(ctx)
}

// What ended long enough ago goes, in as many slices as it takes; what is younger, or has not ended, stays.
func TestRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 2*purgeSlice + 1
		a := newArchive(t, untouched)
		a.add(t, "done", many)
		a.add(t, "waits", 3)
		for _, tt := range []struct {
			wait time.Duration
			want int
		}{{30 * day, many + 3}, {time.Second, 3}, {300 * day, 3}} {
			time.Sleep(tt.wait)
			testenv.Check(t, a.handle(t.Context(), trigger.TimerDelivery{IsPastDue: true}))
			if n := a.left(t); n != tt.want {
				t.Errorf("%d are left after %v more, want %d", n, tt.wait, tt.want)
			}
		}
	})
}

func TestRetentionLeavesTheWorkToAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(t, untouched)
		a.add(t, "done", 1)
		time.Sleep(31 * day)
		testenv.Done(t)(a.locks.Acquire(t.Context(), purgeJob, time.Minute))
		for _, want := range []int{1, 0} {
			testenv.Check(t, a.handle(t.Context(), trigger.TimerDelivery{}))
			if n := a.left(t); n != want {
				t.Errorf("%d are left, want %d", n, want)
			}
			time.Sleep(2 * time.Minute) // the lock of the other ends
		}
	})
}

// A run whose time is up has not failed. The next one goes on where it stopped.
func TestRetentionIsOutOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 3 * purgeSlice
		scans := 0
		var stop context.CancelCauseFunc
		a := newArchive(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Operation == "Scan" {
				if scans++; stop != nil && scans == 4 { // one for unfinished purges, then one a slice: in the third
					stop(trigger.ErrBudget)
					return ctx.Err()
				}
			}
			return next(ctx)
		})
		a.add(t, "done", many)
		time.Sleep(31 * day)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		stop = cancel
		testenv.Check(t, a.handle(ctx, trigger.TimerDelivery{}))
		if n := a.left(t); n != purgeSlice {
			t.Fatalf("%d are left, want a slice", n)
		}
		if next, _ := a.next.Load().(string); next == "" {
			t.Error("the place is forgotten")
		}
		before := scans
		testenv.Check(t, a.handle(t.Context(), trigger.TimerDelivery{}))
		if n, next := a.left(t), a.next.Load(); n != 0 || next != "" || scans-before != 1 {
			t.Errorf("%d are left, the place is %q, after %d scans", n, next, scans-before)
		}
	})
}

// A run that dies is reported, and the next one begins anew and leaves nothing.
func TestRetentionInterrupted(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 12; at++ {
		for _, fault := range []faults.Fault{faults.CrashBefore, faults.CrashAfter} {
			t.Run(fmt.Sprintf("%v at %d", fault, at), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					plan := &faults.Plan{At: at, Fault: fault}
					dying := newArchive(t, plan.Intercept)
					dying.add(t, "done", 5)
					time.Sleep(31 * day)
					if err := dying.handle(t.Context(), trigger.TimerDelivery{}); err == nil {
						t.Fatal("a run that failed reports nothing")
					}
					next := &purger{runtime: dying.healthy, locks: dying.locks, log: dying.log, now: time.Now, keep: dying.keep}
					time.Sleep(purgeLease) // in case the lock is still held
					testenv.Check(t, next.handle(t.Context(), trigger.TimerDelivery{}))
					if n := dying.left(t); n != 0 {
						t.Errorf("%d are left", n)
					}
				})
			})
		}
	}
}
