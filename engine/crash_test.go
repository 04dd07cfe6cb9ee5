package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Every storage call on the way of a message fails in every way, and the process dies there where it can. Then the
// run succeeds once, or the failing one is dead once, and the queue is empty.
func TestCrashAtEveryCall(t *testing.T) {
	t.Parallel()
	succeeded := func(t *testing.T, w *world) {
		t.Helper()
		w.checkSucceeded(t, "c1")
		w.checkSuperseded(t, "c1")
	}
	once := func(w *world) error {
		if w.turns.Load() == 1 {
			return errors.New("jammed")
		}
		return nil
	}
	broken := func(*world) error { return orchestrator.Permanent(errors.New("broken")) }
	jammed := func(*world) error { return errors.New("jammed") }
	well := func(*world) error { return nil }
	scenarios := map[string]struct {
		body  string
		waits bool
		rests rest
		dry   error
		turn  func(w *world) error
		check func(t *testing.T, w *world)
		parts int
	}{
		"succeeds":                   {body: good, turn: well, check: succeeded, parts: 1},
		"fails once":                 {body: good, turn: once, check: succeeded, parts: 1},
		"fails for good":             {body: good, turn: broken, check: checkDead("broken"), parts: 1},
		"fails every time":           {body: good, turn: jammed, check: checkDead(""), parts: 1},
		"waits, fails every time":    {body: good, waits: true, turn: jammed, check: checkDead(""), parts: 1},
		"undecodable":                {body: "garbage", check: checkDead("not a JSON object"), parts: 1},
		"waits":                      {body: good, waits: true, turn: well, check: succeeded, parts: 1},
		"waits and fails once":       {body: good, waits: true, turn: once, check: succeeded, parts: 1},
		"spreads":                    {body: good, turn: well, check: succeeded, parts: spreadAbove + 3},
		"waits and fails for good":   {body: good, waits: true, turn: broken, check: checkDead("broken"), parts: 1},
		"rests between operations":   {body: good, rests: between, turn: well, check: succeeded, parts: 1},
		"rests after operations":     {body: good, rests: after, turn: well, check: succeeded, parts: 1},
		"waits and rests":            {body: good, waits: true, rests: between, turn: once, check: succeeded, parts: 1},
		"rests and fails for good":   {body: good, rests: between, dry: orchestrator.Permanent(errors.New("dry")), turn: well, check: checkDead("dry"), parts: 1},
		"spreads, rests and spreads": {body: good, rests: after, turn: well, check: succeeded, parts: spreadAbove + 3},
	}
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.FailEverywhere(t, nil, func(t *testing.T, plan *enginetest.Plan) {
				w := newWorld(t)
				w.turn, w.waits, w.parts = func(context.Context) error { return s.turn(w) }, s.waits, s.parts
				w.rests, w.dry = s.rests, s.dry
				w.Send(testQueue, s.body)
				if s.waits {
					w.event(t, "c1", time.Minute)
				}
				w.Restart(plan)
				w.Run()
				s.check(t, w)
			})
		})
	}
}
