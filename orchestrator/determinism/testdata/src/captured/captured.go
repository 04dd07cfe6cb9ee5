// Package captured changes variables that closures capture.
package captured

import (
	"context"

	"github.com/vibedata/roundhouse/orchestrator"
)

var act = orchestrator.NewActivity("act", func(context.Context, int) (int, error) { return 0, nil })

type state struct {
	done  int
	names []string
}

func (s *state) add(name string) { s.names = append(s.names, name) } // want add:`changes s\.names`

func (s *state) roll() int { s.done++; return s.done } // want roll:`changes s\.done`

func bump(n *int) bool { *n++; return *n > 3 } // want bump:`changes \*n`

var _ = orchestrator.NewOrchestrator("apart", func(ctx *orchestrator.Context, in int) (int, error) {
	seen, tries := false, 0
	var s state
	_, err := orchestrator.SideEffect(ctx, "look", func() int {
		seen = true // want `^orchestrator code changes seen in a side effect: a replay does not run that; return the value instead$`
		s.done += 2 // want `changes s\.done in a side effect: `
		n := 1
		n++
		return n
	})
	if err != nil {
		return 0, err
	}
	inside := orchestrator.NewActivity("inside", func(context.Context, int) (int, error) {
		tries++        // want `changes tries in an activity: `
		s.add("again") // want `calls captured\.state\.add in an activity, which changes s\.names: `
		return tries, nil
	})
	if _, err := inside.Call(ctx, 1).Await(); err != nil {
		return 0, err
	}
	_ = orchestrator.WaitUntil(ctx, func() bool {
		tries++ // want `changes tries in a condition: a condition may be called any number of times; change it behind the wait`
		return tries > 3
	})
	_ = orchestrator.WaitUntil(ctx, func() bool { return bump(&tries) }) // want `calls captured\.bump in a condition, which changes \*n: `
	enough := func() bool {
		s.names = nil // want `changes s\.names in a condition: `
		return seen
	}
	_ = orchestrator.WaitUntil(ctx, enough)
	_ = orchestrator.WaitUntil(ctx, func() bool { return s.roll() > 3 })    // want `calls captured\.state\.roll in a condition, which changes s\.done: `
	if _, err := orchestrator.SideEffect(ctx, "roll", s.roll); err != nil { // want `uses captured\.state\.roll as a side effect, which changes s\.done: `
		return 0, err
	}
	count := func() { tries++ } // want `changes tries in a side effect: `
	return orchestrator.SideEffect(ctx, "count", func() int { count(); return 1 })
})

// All runs of an orchestrator share the variables declared around it.
func register(limits map[string]int) { // want register:`changes limits\["a"\]`
	runs, limit, last := 0, 3, ""
	var s state
	total := &s.done
	_ = orchestrator.NewOrchestrator("around", func(ctx *orchestrator.Context, in int) (int, error) {
		runs++          // want `changes runs, which all runs share: keep it in a local variable`
		limits["a"]++   // want `changes limits\["a"\], which all runs share: `
		s.add("again")  // want `calls captured\.state\.add, which changes s\.names, which all runs share: `
		*total = 4      // want `changes \*total, which all runs share: `
		if in > limit { // want `reads limit, which is set by captured\.register: hand it in with the input`
			return 0, nil
		}
		return len(last), nil // want `reads last, which is set by captured\.register: `
	})
	limit = 5
	_ = orchestrator.NewActivity("remember", func(_ context.Context, in string) (int, error) {
		last = in
		return 0, nil
	})
}

// counter returns a function that counts.
func counter() func() int {
	n := 0
	return func() int { n++; return n }
}

var next = counter() // want next:`changes n, which all runs share`

var _ = orchestrator.NewOrchestrator("counter", func(ctx *orchestrator.Context, in int) (int, error) {
	return next(), nil // want `calls captured\.next, which changes n, which all runs share: `
})

// branch makes a part of a run.
func branch(s *state) func(*orchestrator.Context) (int, error) { // want branch:`changes s\.done`
	return func(ctx *orchestrator.Context) (int, error) {
		s.done++
		return act.Call(ctx, s.done).Await()
	}
}

// Coroutines of one run take turns, so their changes are the same in a replay.
func fine(limits []int) {
	limit := 3
	if len(limits) > 0 {
		limit = limits[0]
	}
	for i := range limits {
		_ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in int) (int, error) {
			sum, ready := 0, false
			var s state
			add := func(n int) { sum += n }
			first := orchestrator.Go(ctx, func(ctx *orchestrator.Context) (int, error) {
				v, err := act.Call(ctx, limits[i]).Await()
				add(v)
				s.add("first")
				ready = true
				return v, err
			})
			if err := orchestrator.WaitUntil(ctx, func() bool { return ready && sum > limit }); err != nil {
				return 0, err
			}
			if _, err := orchestrator.Go(ctx, branch(&s)).Await(); err != nil {
				return 0, err
			}
			roll, err := orchestrator.SideEffect(ctx, "roll", func() int { return limit })
			sum += roll + s.roll()
			defer func() { sum = 0 }()
			_, _ = first.Await()
			return sum, err
		})
	}
}
