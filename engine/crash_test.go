package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Every storage call on the way of a message fails in every way, and the process dies there where it can. Whatever
// happens: the run succeeds once, or the failing one is dead once, and the queue is empty.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	succeeded := func(t *testing.T, w *world) { t.Helper(); w.checkSucceeded(t, "c1") }
	once := func(w *world) error {
		if w.turns.Load() == 1 {
			return errors.New("jammed")
		}
		return nil
	}
	never := func(*world) error { return orchestrator.Permanent(errors.New("broken")) }
	scenarios := map[string]struct {
		body  string
		waits bool
		turn  func(w *world) error
		check func(t *testing.T, w *world)
		parts int
	}{
		"succeeds":                 {good, false, func(*world) error { return nil }, succeeded, 1},
		"fails once":               {good, false, once, succeeded, 1},
		"fails for good":           {good, false, never, checkDead("broken"), 1},
		"undecodable":              {"garbage", false, nil, checkDead("not a JSON object"), 1},
		"waits":                    {good, true, func(*world) error { return nil }, succeeded, 1},
		"waits and fails once":     {good, true, once, succeeded, 1},
		"spreads":                  {good, false, func(*world) error { return nil }, succeeded, spreadAbove + 3},
		"waits and fails for good": {good, true, never, checkDead("broken"), 1},
	}
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, plan *faults.Plan) {
				w := newWorld()
				w.turn, w.waits, w.parts = func(context.Context) error { return s.turn(w) }, s.waits, s.parts
				w.prepare(t)
				w.send(t, s.body)
				if s.waits {
					w.event(t, "c1", time.Minute)
				}
				p := w.process(t, plan)
				alive := func(int) *engine.Pipeline {
					if plan.Crashed() {
						p = w.process(t, nil)
					}
					return p
				}
				w.host(t, alive)
				plan.Wait() // and then for what came late
				w.host(t, alive)
				s.check(t, w)
			}
			count := &faults.Plan{}
			synctest.Test(t, func(t *testing.T) { run(t, count) })
			for at := range count.Calls() {
				for _, fault := range faults.Faults() {
					t.Run(fmt.Sprintf("%s-%d", fault, at+1), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: fault}) })
					})
				}
			}
		})
	}
}
