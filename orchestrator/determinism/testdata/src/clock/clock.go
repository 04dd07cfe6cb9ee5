// Package clock reads clocks and waits for them.
package clock

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

var _ = orchestrator.NewOrchestrator("now", func(ctx *orchestrator.Context, in time.Time) (time.Duration, error) {
	began := time.Now()                                 // want `^orchestrator code calls time\.Now: use ctx\.Now\(\)$`
	age := time.Since(in)                               // want `calls time\.Since: use ctx\.Now\(\)\.Sub`
	left := time.Until(began)                           // want `calls time\.Until: use t\.Sub\(ctx\.Now\(\)\)`
	clock := time.Now                                   // want `uses time\.Now: use ctx\.Now\(\)`
	return age + left + clock().Sub(began.Local()), nil // want `calls time\.Time\.Local: use UTC`
})

var _ = orchestrator.NewOrchestrator("wait", func(c *orchestrator.Context, in time.Duration) (int, error) {
	time.Sleep(in)                                    // want `calls time\.Sleep: use ctx\.Sleep or orchestrator\.Timer`
	_ = time.After(in)                                // want `calls time\.After: `
	_ = time.Tick(in)                                 // want `calls time\.Tick: `
	_ = time.NewTicker(in)                            // want `calls time\.NewTicker: `
	t := time.NewTimer(in)                            // want `calls time\.NewTimer: `
	t.Stop()                                          // want `calls time\.Timer\.Stop: `
	time.AfterFunc(in, func() {})                     // want `calls time\.AfterFunc: `
	_ = time.Date(2026, 1, 1, 0, 0, 0, 0, time.Local) // want `uses time\.Local: use UTC`
	return 0, nil
})

var _ = orchestrator.NewOrchestrator("deadline", func(_ *orchestrator.Context, in time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), in) // want `calls context\.WithTimeout: use orchestrator\.WithTimeout` `calls context\.Background: what takes a context\.Context belongs in an activity`
	defer cancel()
	_, cancel = context.WithDeadline(ctx, time.Now()) // want `calls context\.WithDeadline: ` `calls time\.Now: `
	cancel()
	return 0, nil
})

// No fix: ctx names something else there.
var _ = orchestrator.NewOrchestrator("shadow", func(ctx *orchestrator.Context, in int) (time.Time, error) {
	{
		ctx := in
		_ = ctx
		return time.Now(), nil // want `calls time\.Now: `
	}
})

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in time.Duration) (time.Time, error) {
	ctx.Sleep(in)
	at, err := orchestrator.Timer(ctx, 2*time.Hour).Await()
	if err != nil {
		return at, err
	}
	parsed, err := time.Parse(time.RFC3339, "2026-01-02T03:04:05Z")
	return parsed.Add(ctx.Now().Sub(at)).UTC().Truncate(time.Hour), err
})
