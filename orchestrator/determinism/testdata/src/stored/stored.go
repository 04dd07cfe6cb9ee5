// Package stored keeps contexts in structures.
package stored

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// run is an orchestration with its Context.
type run struct {
	ctx   *orchestrator.Context
	step  int
	named map[string]int
}

type wrapped struct {
	run
	name string
}

type step interface{ do() (int, error) }

func (r *run) do() (int, error) { // want do:`calls time\.Now` do:`changes r\.step`
	r.step++
	return time.Now().Day() + r.ctx.Execution(), nil // want `^orchestrator code calls time\.Now: use ctx\.Now\(\)$`
}

func (r wrapped) wait() { time.Sleep(1) } // want wait:`calls time\.Sleep` `calls time\.Sleep: `

func finish(r *wrapped) { _ = time.Now() } // want finish:`calls time\.Now` `calls time\.Now: `

func (r *run) fine() (int, error) { // want fine:`changes r\.step`
	r.step++
	return r.step, r.ctx.Sleep(time.Hour)
}

func all(steps []step) {
	for _, s := range steps {
		_, _ = s.do()
	}
}

var _ = orchestrator.NewOrchestrator("stored", func(ctx *orchestrator.Context, in int) (int, error) {
	r := &run{ctx: ctx}
	all([]step{r})
	return r.fine()
})

// outside keeps a context.Context.
type outside struct {
	ctx    context.Context
	charge func(context.Context, int) (int, error)
}

type store interface {
	Get(ctx context.Context, key int) (int, error)
}

var background = context.Background()

func charge(ctx context.Context, in int) (int, error) { return in, ctx.Err() }

func (o *outside) run(ctx *orchestrator.Context, in int) (int, error) { // want run:`uses the field ctx`
	return charge(o.ctx, in) // want `uses the field ctx, a stored context\.Context: what takes a context\.Context belongs in an activity`
}

var _ = orchestrator.NewOrchestrator("outside", (&outside{ctx: context.Background()}).run)

func register(ctx context.Context, s store) { // want register:`uses stored\.background`
	o := outside{ctx: ctx, charge: charge}
	_ = orchestrator.NewOrchestrator("captured", func(_ *orchestrator.Context, in int) (int, error) {
		_, _ = s.Get(ctx, in)         // want `uses ctx, a stored context\.Context: `
		_, _ = charge(background, in) // want `uses stored\.background, a stored context\.Context: `
		return o.charge(o.ctx, in)    // want `uses the field ctx, a stored context\.Context: `
	})
	_ = orchestrator.NewActivity("activity", func(ctx context.Context, in int) (int, error) { return s.Get(o.ctx, in) })
}
