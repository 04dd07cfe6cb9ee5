// Package fields has functions in fields and other variables.
package fields

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/orchestrator"
)

type flow struct {
	now   func() time.Time // want now:`uses time\.Now`
	id    func() string    // want id:`calls uuid\.NewString`
	calm  func(int) int
	steps []func() time.Time                  // want steps:`uses time\.Now`
	later func() time.Time                    // want later:`uses fields\.flow\.clock`
	given func() time.Time                    // want given:`uses now, which uses time\.Now`
	inner struct{ sleep func(time.Duration) } // want sleep:`uses time\.Sleep`
	unset func() time.Time
}

func (f *flow) clock() time.Time { return time.Now() } // want clock:`calls time\.Now`

func newFlow(now func() time.Time) *flow { // want newFlow:`.*`
	f := &flow{
		now:   time.Now,
		id:    func() string { return uuid.NewString() },
		calm:  func(n int) int { return n },
		given: now,
	}
	f.steps = append(f.steps, time.Now)
	f.later = f.clock
	f.inner.sleep = time.Sleep
	return f
}

func (f *flow) run(ctx *orchestrator.Context, in int) (string, error) { // want run:`calls the field now`
	_ = f.now()      // want `^orchestrator code calls the field now, which uses time\.Now: use ctx\.Now\(\)$`
	_ = f.steps[0]() // want `calls the field steps, which uses time\.Now: `
	_ = f.later()    // want `calls the field later, which uses fields\.flow\.clock, which calls time\.Now: `
	_ = f.given()    // want `calls the field given, which uses now, which uses time\.Now: `
	f.inner.sleep(1) // want `calls the field sleep, which uses time\.Sleep: `
	_ = f.unset()
	_ = f.calm(in)
	for _, step := range f.steps { // want `uses the field steps, which uses time\.Now: `
		_ = step()
	}
	return f.id(), nil // want `calls the field id, which calls uuid\.NewString: `
}

var _ = orchestrator.NewOrchestrator("run", newFlow(time.Now).run)

type rule struct {
	name  string
	check func(int) bool // want check:`calls time\.Now`
}

var rules = []rule{{"day", func(n int) bool { return time.Now().Day() == n }}, {name: "even"}}

var table = map[string]func() string{"id": uuid.NewString} // want table:`uses uuid\.NewString`

var either = func() time.Time { return time.Time{} } // want either:`uses time\.Now`

// UseClock changes either.
func UseClock() { either = time.Now } // want UseClock:`.*`

var _ = orchestrator.NewOrchestrator("tables", func(ctx *orchestrator.Context, in int) (string, error) {
	for _, r := range rules {
		if r.check(in) { // want `calls the field check, which calls time\.Now: `
			return r.name, nil
		}
	}
	_ = either() // want `calls fields\.either, which uses time\.Now: `
	local := rule{check: func(n int) bool { return n > 3 }}
	_ = local.check(in)
	wrong := rule{check: func(n int) bool { return time.Now().Day() == n }} // want `calls time\.Now: `
	_ = wrong.check(in)
	return table["id"](), nil // want `calls fields\.table, which uses uuid\.NewString: `
})

type handlers struct {
	charge func(context.Context, int) (time.Time, error) // want charge:`calls time\.Now`
	total  func(...int) int
}

var registered = handlers{
	charge: func(context.Context, int) (time.Time, error) { return time.Now(), nil },
	total: func(all ...int) int {
		sum := 0
		for _, n := range all {
			sum += n
		}
		return sum
	},
}

var charge = orchestrator.NewActivity("charge", registered.charge)

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in int) (int, error) {
	own := flow{now: ctx.Now, calm: func(n int) int { return n + 1 }}
	if _, err := charge.Call(ctx, own.calm(in)).Await(); err != nil {
		return own.now().Day(), err
	}
	return registered.total(in, in), nil
})
