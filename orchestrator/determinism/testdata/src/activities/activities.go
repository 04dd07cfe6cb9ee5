// Package activities has code next to orchestrators and inside them that is not orchestrator code.
package activities

import (
	"context"
	"os"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

func read(_ context.Context, name string) (string, error) { // want read:`calls os\.ReadFile`
	b, err := os.ReadFile(name)
	return string(b), err
}

var reading = orchestrator.NewActivity("read", read)

var waiting = orchestrator.NewActivity("wait", func(ctx context.Context, in int) (int, error) {
	select {
	case <-time.After(time.Duration(in)):
		return in, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
})

var _ = orchestrator.NewOrchestrator("inside", func(ctx *orchestrator.Context, in string) (string, error) {
	here := orchestrator.NewActivity("here", func(context.Context, int) (time.Time, error) { return time.Now(), nil })
	if _, err := here.Call(ctx, 1).Await(); err != nil {
		return "", err
	}
	held := func(context.Context, int) (time.Time, error) { return time.Now(), nil }
	if _, err := orchestrator.NewActivity("held", held).Call(ctx, 1).Await(); err != nil {
		return "", err
	}
	pid, err := orchestrator.SideEffect(ctx, "pid", os.Getpid)
	if err != nil {
		return "", err
	}
	if _, err := orchestrator.SideEffect(ctx, "host", func() string { h, _ := os.Hostname(); return h }); err != nil {
		return "", err
	}
	if _, err := waiting.Call(ctx, pid).Await(); err != nil {
		return "", err
	}
	return reading.Call(ctx, in, orchestrator.WithTimeout(time.Minute)).Await()
})

// An activity that is called as if it were a function is one no longer.
var _ = orchestrator.NewOrchestrator("called", func(ctx *orchestrator.Context, in string) (string, error) {
	held := func(context.Context, int) (time.Time, error) { return time.Now(), nil }
	_ = orchestrator.NewActivity("held", held)
	_, _ = held(context.Background(), 1)  // want `calls held, which calls time\.Now: ` `calls context\.Background: `
	return read(context.Background(), in) // want `calls activities\.read, which calls os\.ReadFile: do it in an activity` `calls context\.Background: `
})

// An orchestrator inside code that is not orchestrator code is an orchestrator all the same.
var _ = orchestrator.NewActivity("register", func(context.Context, int) (int, error) {
	_ = time.Now()
	_ = orchestrator.NewOrchestrator("late", func(ctx *orchestrator.Context, in int) (time.Time, error) {
		return time.Now(), nil // want `calls time\.Now: `
	})
	return 0, nil
})
