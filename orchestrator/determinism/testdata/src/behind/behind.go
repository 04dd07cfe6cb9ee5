// Package behind has values that differ behind interfaces.
package behind

import (
	"context"
	"fmt"
	"io"
	"os"
	"sort"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

type clock interface {
	Now() time.Time
	Name() string
}

type system struct{}

func (system) Now() time.Time { return time.Now() } // want Now:`calls time\.Now`
func (system) Name() string   { return "system" }

type fixed struct{ at time.Time }

func (f fixed) Now() time.Time { return f.at }
func (fixed) Name() string     { return "fixed" }

type ticking struct{ at *time.Time }

func (t *ticking) Now() time.Time { return t.at.Add(time.Since(*t.at)) } // want Now:`calls time\.Since`
func (*ticking) Name() string     { return "ticking" }

var (
	wall    clock = system{} // want wall:`.*`
	stopped clock = fixed{}
	clocks        = []clock{fixed{}, system{}} // want clocks:`.*`
)

func pick(real bool) clock { // want pick:`uses behind\.system\.Now, which calls time\.Now`
	if real {
		return system{}
	}
	return fixed{}
}

func now(c clock) time.Time { return c.Now() }

func tick[C clock](c C) time.Time { return c.Now() }

type byClock []int

func (b byClock) Len() int           { return len(b) }
func (b byClock) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }         // want Swap:`.*`
func (b byClock) Less(i, j int) bool { return time.Now().Unix()%2 == 0 } // want Less:`calls time\.Now`

type flow struct {
	clock clock // want clock:`.*`
	calm  clock
}

func newFlow(c clock) *flow { return &flow{clock: c, calm: fixed{}} }

func (f *flow) run(ctx *orchestrator.Context, in int) (int, error) { // want run:`calls behind\.ticking\.Now`
	return f.clock.Now().Day() + f.calm.Now().Day(), nil // want `^orchestrator code calls behind\.ticking\.Now, which calls time\.Since: use ctx\.Now\(\)\.Sub$`
}

var _ = orchestrator.NewOrchestrator("run", newFlow(&ticking{}).run)

type embedding struct{ clock } // want clock:`uses behind\.system\.Now`

var embedded = embedding{system{}}

var _ = orchestrator.NewOrchestrator("behind", func(ctx *orchestrator.Context, in []int) (string, error) {
	var c clock = system{} // want `uses behind\.system\.Now, which calls time\.Now: use ctx\.Now\(\)`
	_ = c.Now()
	_ = wall.Now()                  // want `calls behind\.system\.Now, which calls time\.Now: `
	_ = embedded.Now()              // want `calls behind\.system\.Now, which calls time\.Now: `
	_ = pick(false).Now()           // want `calls behind\.pick, which uses behind\.system\.Now`
	_ = now(&ticking{})             // want `uses behind\.ticking\.Now, which calls time\.Since: `
	_ = clocks[0].Now()             // want `calls behind\.system\.Now, which calls time\.Now: `
	_ = now(wall)                   // want `uses behind\.wall, which .*calls time\.Now: `
	sort.Sort(byClock(in))          // want `uses behind\.byClock\.Less, which calls time\.Now: `
	_ = []clock{&ticking{}}         // want `uses behind\.ticking\.Now`
	_ = struct{ c clock }{system{}} // want `uses behind\.system\.Now` c:`uses behind\.system\.Now`
	return fmt.Sprint(ctx.Now()), nil
})

// counter is one for all runs.
type counter interface{ next() int }

type counting struct{ n int }

func (c *counting) next() int { c.n++; return c.n } // want next:`changes c\.n`

var counters counter = &counting{}

type numbered struct{ counter counter }

func (n *numbered) run(ctx *orchestrator.Context, in int) (int, error) { // want run:`calls behind\.counting\.next, which changes c\.n;` run:`which all runs share`
	return n.counter.next() + counters.next(), nil // want `^orchestrator code calls behind\.counting\.next, which changes c\.n, which all runs share: ` `calls behind\.counting\.next, which changes c\.n, which all runs share: `
}

var _ = orchestrator.NewOrchestrator("numbered", (&numbered{&counting{}}).run)

type stamp struct{}

func (stamp) String() string { return time.Now().String() } // want String:`calls time\.Now`

var input io.Reader = os.Stdin // want input:`uses os\.Stdin`

var _ = orchestrator.NewOrchestrator("library", func(ctx *orchestrator.Context, in int) (string, error) {
	var s fmt.Stringer = stamp{} // want `uses behind\.stamp\.String, which calls time\.Now: `
	_, _ = input.Read(nil)       // want `calls os\.File\.Read: do it in an activity`
	var x any = in
	if c, ok := x.(clock); ok {
		_ = c.Now() // want `calls behind\.system\.Now, which calls time\.Now: ` `calls behind\.ticking\.Now, which calls time\.Since: `
	}
	return fmt.Sprint(stamp{}) + s.String(), nil // want `uses behind\.stamp\.String, which calls time\.Now: `
})

func register(c clock) {
	_ = orchestrator.NewOrchestrator("captured", func(ctx *orchestrator.Context, in int) (time.Time, error) {
		return c.Now(), nil // want `calls behind\.system\.Now, which calls time\.Now: `
	})
}

// Start registers.
func Start() { register(system{}) } // want Start:`.*`

// unknown implementations may be any of those that there are.
func (f *unknown) run(ctx *orchestrator.Context, in int) (int, error) { // want run:`.*`
	return f.store.Load(), nil // want `calls behind\.files\.Load, which `
}

type store interface{ Load() int }

type unknown struct{ store store }

type files struct{ seen map[string]int }

func (f *files) Load() int { // want Load:`ranges over a map`
	for _, v := range f.seen {
		return v
	}
	return 0
}

var _ = orchestrator.NewActivity("clock", func(context.Context, int) (time.Time, error) { return now(system{}), nil })

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in time.Time) (time.Time, error) {
	var c clock = fixed{in}
	f := newFlow(c)
	other := flow{clock: c}
	if wall.Name() == "system" {
		return now(fixed{in}), nil
	}
	_ = tick(fixed{in})
	day := func(c clock) int { return c.Now().Day() }
	_ = day(fixed{in})
	return stopped.Now().Add(c.Now().Sub(f.calm.Now())).Add(other.clock.Now().Sub(in)), nil
})
