// Package forms has orchestrator code in all its forms.
package forms

import (
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

type flow struct{}

// Run is a method.
func (flow) Run(ctx *orchestrator.Context, in int) (int, error) { // want Run:`calls time\.Now`
	return time.Now().Nanosecond(), nil // want `calls time\.Now: `
}

func last(in int, ctx *orchestrator.Context) { // want last:`calls time\.Now`
	_ = time.Now() // want `calls time\.Now: `
}

// caller gets no second report of the findings in last.
func caller(ctx *orchestrator.Context) {
	last(1, ctx)
	_, _ = flow{}.Run(ctx, 1)
}

func generic[T any](ctx *orchestrator.Context, in T) (T, time.Time) { // want generic:`calls time\.Now`
	return in, time.Now() // want `calls time\.Now: `
}

// Context is a shorter name.
type Context = orchestrator.Context

func aliased(*Context) { // want aliased:`calls time\.Now`
	_ = time.Now() // want `calls time\.Now: `
}

func maker(steps []int) func(*orchestrator.Context) { // want maker:`calls time\.Now`
	return func(ctx *orchestrator.Context) {
		defer func() {
			if len(steps) > 0 {
				_ = time.Now() // want `calls time\.Now: `
			}
		}()
	}
}

var held = func(ctx *orchestrator.Context) { // want held:`calls time\.Now`
	_ = time.Now() // want `calls time\.Now: `
}

// None of this is orchestrator code.
func plain(orchestrator.ActivityInfo) time.Time { return time.Now() } // want plain:`calls time\.Now`
