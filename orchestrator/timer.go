package orchestrator

import "time"

// Timer returns a Future that is done when d has passed since Context.Now. It is durable, like the orchestration, and
// may be of any length. Its value is the time for which it was set.
func Timer(ctx *Context, d time.Duration) *Future[time.Time] {
	if ctx.isCanceled() {
		return failedFuture[time.Time](ctx, canceledError("timer"))
	}
	return &Future[time.Time]{ctx: ctx, task: ctx.execution.timer(ctx, d)}
}

// Sleep waits until d has passed. The error is ErrCanceled.
func (c *Context) Sleep(d time.Duration) error {
	_, err := Timer(c, d).Await()
	return err
}
