// Package calls has orchestrators that do wrong through others.
package calls

import (
	"context"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/determinism/testdata/src/calls/lib"
)

var _ = followed

var clock = time.Now // want clock:`uses time\.Now`

func local() string { return lib.Stamp() } // want local:`calls lib\.Stamp, which calls time\.Now`

type calendar struct{ now func() time.Time }

func (c calendar) today() time.Time { return time.Now() } // want today:`calls time\.Now`

func (c calendar) tomorrow() time.Time { return c.now() }

type dater interface{ today() time.Time }

type store interface{ get(context.Context) int }

func look(s store) int { return s.get(context.TODO()) } // want look:`calls context\.TODO`

var _ = orchestrator.NewOrchestrator("calls", func(ctx *orchestrator.Context, in []int) (int, error) {
	_ = lib.Stamp()             // want `^orchestrator code calls lib\.Stamp, which calls time\.Now: use ctx\.Now\(\)$`
	_ = lib.Deep()              // want `calls lib\.Deep, which calls lib\.deeper, which calls lib\.Stamp, which calls time\.Now: `
	_ = local()                 // want `calls calls\.local, which calls lib\.Stamp, which calls time\.Now: `
	_ = clock()                 // want `calls calls\.clock, which uses time\.Now: `
	_ = lib.Clock()             // want `calls lib\.Clock, which uses time\.Now: `
	_ = calendar{}.today()      // want `calls calls\.calendar\.today, which calls time\.Now: `
	_ = lib.Even(3)             // want `calls lib\.Even, which calls lib\.Odd, which calls time\.Now: `
	_ = lib.Keys(map[int]int{}) // want `calls lib\.Keys, which ranges over a map: `
	_ = lib.Shared(ctx)         // want `calls lib\.Shared, which calls time\.Now: `
	lib.Step1()                 // want `which calls lib\.step4, which after 3 more calls time\.Sleep: `
	_ = look(nil)               // want `calls calls\.look, which calls context\.TODO: what takes a context\.Context belongs in an activity`
	b := lib.Box[int]{}
	_, _ = b.Open()                    // want `calls lib\.Box\.Open, which calls lib\.Stamp`
	_, _ = (&lib.Box[string]{}).Open() // want `calls lib\.Box\.Open, which calls lib\.Stamp`
	slices.SortFunc(in, byClock)       // want `uses calls\.byClock, which calls time\.Now: `
	return b.Peek(), nil
})

func byClock(a, b int) int { return a - b + time.Now().Nanosecond() } // want byClock:`calls time\.Now`

// A variable with only one value is followed, wherever it is; a loop of calls does not matter.
func followed() { // want followed:`calls time\.Now`
	stamp := func() time.Time { return time.Now() }
	var recursive func(int) int
	recursive = func(n int) int { return recursive(n-1) + stamp().Nanosecond() }
	_ = func(ctx *orchestrator.Context) int {
		again := func() int { return stamp().Nanosecond() } // want `calls stamp, which calls time\.Now`
		return recursive(again())                           // want `calls recursive, which calls stamp, which calls time\.Now`
	}
}

// Calls that cannot be followed are ignored.
var _ = orchestrator.NewOrchestrator("unseen", func(ctx *orchestrator.Context, in []int) (int, error) {
	var d dater = calendar{} // want `uses calls\.calendar\.today, which calls time\.Now: `
	_ = d.today()
	_ = calendar{}.tomorrow()
	either := func() time.Time { return ctx.Now() }
	if len(in) > 0 {
		either = calendar{}.tomorrow
	}
	return either().Nanosecond(), nil
})

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in []int) (string, error) {
	if lib.Allowed() {
		return "", nil
	}
	return lib.Format(ctx.Now()), nil
})
