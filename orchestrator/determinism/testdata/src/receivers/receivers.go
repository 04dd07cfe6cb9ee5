// Package receivers has orchestrators that are methods.
package receivers

import (
	"context"
	"math/rand/v2"

	"github.com/vibedata/roundhouse/orchestrator"
)

type flow struct {
	charge  *orchestrator.Activity[int, int]
	limit   int
	fixed   int
	runs    int
	last    int
	setup   bool
	retries int
	cache   map[int]int
	stats   struct{ failed int }
	dice    *rand.Rand
}

type option func(*flow)

func withRetries(n int) option { return func(f *flow) { f.retries = n } }

func newFlow(limit int, options ...option) *flow {
	f := &flow{cache: map[int]int{}, fixed: 3, dice: rand.New(rand.NewPCG(1, 2))}
	f.limit = limit
	for _, o := range options {
		o(f)
	}
	f.prepare()
	f.charge = orchestrator.NewActivity("charge", func(_ context.Context, in int) (int, error) {
		f.last = in
		return in, nil
	})
	return f
}

func (f *flow) prepare() { f.setup = true } // want prepare:`changes f\.setup`

// SetLimit may be called at any time.
func (f *flow) SetLimit(n int) { f.limit = n } // want SetLimit:`changes f\.limit`

func (f *flow) count() { f.runs++ } // want count:`changes f\.runs`

func (f *flow) countTwice() { f.count(); f.count() } // want countTwice:`calls receivers\.flow\.count, which changes f\.runs`

func (f *flow) run(ctx *orchestrator.Context, in int) (int, error) { // want run:`changes f\.runs;` run:`changes f\.runs, which all runs share`
	f.runs++         // want `^orchestrator code changes f\.runs, which all runs share: keep it in a local variable, or return it from an activity$`
	f.cache[in] = in // want `changes f\.cache\[in\], which all runs share: `
	f.stats.failed++ // want `changes f\.stats\.failed, which all runs share: `
	f.countTwice()   // want `calls receivers\.flow\.countTwice, which calls receivers\.flow\.count, which changes f\.runs, which all runs share: `
	again := f
	again.runs = 3     // want `changes again\.runs, which all runs share: `
	_ = f.dice.IntN(6) // want `changes f\.dice, which all runs share: `
	if in > f.limit {  // want `reads the field limit, which is set by receivers\.flow\.SetLimit: hand it in with the input, or return it from an activity`
		return f.last, nil // want `reads the field last, which is set by receivers\.newFlow: `
	}
	if f.setup && in < f.retries {
		return f.fixed, nil
	}
	return f.charge.Call(ctx, in).Await()
}

var shared = newFlow(3, withRetries(2))

var _ = orchestrator.NewOrchestrator("run", shared.run)

var _ = orchestrator.NewOrchestrator("through", func(ctx *orchestrator.Context, in int) (int, error) {
	shared.count() // want `calls receivers\.flow\.count, which changes f\.runs, which all runs share: `
	return in, nil
})

// Unregistered looks like an orchestrator, and is registered by another package.
func (f *flow) Unregistered(ctx *orchestrator.Context, in int) (int, error) { // want Unregistered:`changes f\.last;` Unregistered:`changes f\.last, which all runs share`
	f.last++ // want `changes f\.last, which all runs share: `
	return 0, nil
}

// saga belongs to one run.
type saga struct {
	undo  []int
	steps int
}

func (s *saga) step(ctx *orchestrator.Context, in int) (int, error) { // want step:`changes s\.undo`
	s.undo = append(s.undo, in)
	s.steps++
	return s.steps, nil
}

func (s *saga) done() int { s.steps = 0; return len(s.undo) } // want done:`changes s\.steps`

// late gets its activities when it is registered.
type late struct {
	named map[string]*orchestrator.Activity[int, int]
	all   struct {
		charge *orchestrator.Activity[int, int]
	}
}

// Register makes the activities.
func (l *late) Register() { // want Register:`changes l\.named`
	charge := orchestrator.NewActivity("late", func(context.Context, int) (int, error) { return 0, nil })
	l.named = map[string]*orchestrator.Activity[int, int]{"charge": charge}
	l.all.charge = charge
	_ = orchestrator.NewOrchestrator("late", l.run)
}

func (l *late) run(ctx *orchestrator.Context, in int) (int, error) {
	if _, err := l.named["charge"].Call(ctx, in).Await(); err != nil {
		return 0, err
	}
	return l.all.charge.Call(ctx, in).Await()
}

// step is a part of a run that is called through an interface.
type step interface {
	do(ctx *orchestrator.Context, in int) (int, error)
}

type charging struct{ tries int }

func (c *charging) do(ctx *orchestrator.Context, in int) (int, error) { // want do:`changes c\.tries`
	c.tries++
	return c.tries, nil
}

var _ = orchestrator.NewOrchestrator("steps", func(ctx *orchestrator.Context, in int) (int, error) {
	for _, s := range []step{&charging{}} {
		if _, err := s.do(ctx, in); err != nil {
			return 0, err
		}
	}
	return 0, nil
})

// value is copied for each run.
type value struct{ n int }

func (v value) run(ctx *orchestrator.Context, in int) (int, error) {
	v.n++
	return v.n, nil
}

var _ = orchestrator.NewOrchestrator("value", value{}.run)

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in int) (int, error) {
	s := &saga{}
	if _, err := s.step(ctx, in); err != nil {
		return 0, err
	}
	if _, err := orchestrator.Go(ctx, func(ctx *orchestrator.Context) (int, error) { return s.step(ctx, in) }).Await(); err != nil {
		return 0, err
	}
	own := newFlow(in)
	own.count()
	own.SetLimit(4)
	return s.done() + own.runs + own.fixed, nil
})
