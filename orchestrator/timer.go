package orchestrator

import "time"

// Timer is a Future that is done when d has passed, counted from Context.Now. It survives everything that the
// orchestration survives, and may be of any length. Its value is the time that it was set for.
func Timer(ctx *Context, d time.Duration) *Future[time.Time] {
	if ctx.isCanceled() {
		return failedFuture[time.Time](ctx, canceledError("timer"))
	}
	return &Future[time.Time]{ctx: ctx, task: ctx.execution.timer(ctx, d)}
}

// Sleep waits until d has passed. The error is ErrCanceled: the orchestration was canceled before.
func (c *Context) Sleep(d time.Duration) error {
	_, err := Timer(c, d).Await()
	return err
}
