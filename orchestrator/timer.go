package orchestrator

import "time"

// Timer is a Future that is done when d has passed, counted from Context.Now. It survives everything that the
// orchestration survives, and may be of any length. Its value is the time that it was set for.
func Timer(ctx *Context, d time.Duration) *Future[time.Time] {
	return &Future[time.Time]{ctx: ctx, task: ctx.execution.timer(d)}
}

// Sleep waits until d has passed.
func (c *Context) Sleep(d time.Duration) {
	// A timer cannot fail.
	_, _ = Timer(c, d).Await()
}
