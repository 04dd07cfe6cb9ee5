package handler_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/faults/faultstest"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Wherever a process dies that takes at once what it accepts, what it has accepted is done by another one, and not half.
func TestTakenAtOnceAndCrashed(t *testing.T) {
	t.Parallel()
	faultstest.EachCall(t, []faults.Fault{faults.CrashBefore, faults.CrashAfter, faults.Unknown, faults.Applied}, 20, crashed)
}

// crashed starts a run, raises its event and lets its timer become due in a process with a plan, and has another one finish.
func crashed(t *testing.T, plan *faults.Plan) {
	var e errands
	var on atomic.Bool
	h := handlertest.NewWith(t, e.app(), map[string]string{"ROUNDHOUSE_DIRECT": "64"}, func(c *handler.Config) { through(c, while(&on, plan.Intercept)) })
	on.Store(true)
	accepted := func(path, body string) {
		for range 5 { // whoever is refused sends again later, to another process if need be
			status, _ := h.Do(http.MethodPost, path, body)
			synctest.Wait()
			if status/100 == 2 {
				return
			}
			if plan.Crashed() {
				h.Restart(nil, func(*handler.Config) {})
			}
			time.Sleep(time.Minute)
			h.Deliver()
		}
		t.Errorf("%s is not taken", path)
	}
	accepted("/api/errands", `{"correlationId": "c1", "input": {"Event": true, "Nap": 90000000000}}`)
	accepted("/api/orchestrations/errand-c1/events/go", `true`)
	time.Sleep(3 * time.Minute)
	before := e.ran.Load()
	h.Restart(nil, func(*handler.Config) {})
	for range 3 * 60 {
		time.Sleep(10 * time.Second)
		h.Deliver()
	}
	if got := h.Outcome("errand-c1").Status; got != orchestrator.Completed {
		t.Errorf("it is %s", got)
	}
	if plan.At == 0 && before != 1 {
		t.Errorf("the activity ran %d times before another process came", before)
	}
	if n := e.ran.Load(); n < 1 || n > 2 || plan.At == 0 && n != 1 {
		t.Errorf("the activity ran %d times", n)
	}
	succeeded := 0
	for _, entry := range h.History("errand") {
		if entry.Status == engine.StatusSucceeded && entry.Operation == "errand" {
			succeeded++
		}
	}
	if letters := h.DeadLetters("errand"); succeeded > 1 || len(letters) > 0 {
		t.Errorf("%d successes, dead letters %+v", succeeded, letters)
	}
}

// slowWork is an app whose activity takes an hour, unless quick is set.
type slowWork struct {
	begun, running atomic.Int64
	quick          atomic.Bool
}

func (s *slowWork) app() handler.App {
	nap := orchestrator.NewActivity("nap", func(ctx context.Context, _ int) (bool, error) {
		s.begun.Add(1)
		if s.quick.Load() {
			return true, nil
		}
		s.running.Add(1)
		defer s.running.Add(-1)
		<-ctx.Done()
		return false, ctx.Err()
	}, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 1}))
	run := func(ctx *orchestrator.Context, _ engine.Request[struct{}]) (bool, error) {
		return nap.Call(ctx, 0).Await()
	}
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: "slow", Queue: "slow-queue", Orchestrator: engine.Orchestrate("slow", run), Operations: []orchestrator.AnyActivity{nap},
			Intakes: []engine.Intake{{Function: "slow-intake", Route: "slow"}}}}, nil
	}}
}

// A process that is told to end, and an app that is drained, give back what was taken at once, without using up an attempt.
func TestTakenAtOnceAndGivenBack(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{"it ends": 0, "it is drained": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var s slowWork
				h := handlertest.New(t, s.app(), map[string]string{"ROUNDHOUSE_DIRECT": "64"})
				post(t, h, "/api/slow", `{"correlationId": "c1", "input": {}}`)
				if n := s.begun.Load(); n != 1 {
					t.Fatalf("%d began", n)
				}
				if store := (drain.Store{Tables: h.Tables}); away == 0 {
					h.Leave()
				} else if _, err := store.Begin(t.Context(), "ann", 30*time.Second); err != nil {
					t.Fatal(err)
				}
				time.Sleep(drain.Notice)
				synctest.Wait()
				if n := s.running.Load(); n != 0 {
					t.Errorf("%d run", n)
				}
				h.Restart(nil, func(*handler.Config) {})
				s.quick.Store(true)
				if time.Sleep(away); h.Deliver() == 0 {
					t.Errorf("nothing is there after %v", away)
				}
				if n := s.begun.Load(); n != 2 || h.Outcome("slow-c1").Status != orchestrator.Completed {
					t.Errorf("%d began, and the run is %s", n, h.Outcome("slow-c1").Status)
				}
				for _, entry := range h.History("slow") {
					if entry.Status != engine.StatusSucceeded {
						t.Errorf("an attempt was used up: %+v", entry)
					}
				}
			})
		})
	}
}
