package orchestrator

import (
	"errors"
	"testing"
	"time"
)

// skewed is a runtime with a clock that is ahead of the bubble's by ahead.
func (w *world) skewed(t *testing.T, ahead *time.Duration, o AnyOrchestrator) *Runtime {
	t.Helper()
	now := func() time.Time { return time.Now().Add(*ahead) }
	return w.configured(t, nil, Config{Orchestrators: []AnyOrchestrator{o}, Queues: w.queues, Now: now})
}

// A clock that was ahead by a day delays no decision made once it is right again: no timer, no time computed from Now,
// and no timeout of the next execution.
func TestTimersAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	begun := func(ctx *Context) error { // learns an event while the clock is ahead, and one when it is right
		_, first := Event[int](ctx, "number").Await()
		_, second := Event[int](ctx, "number").Await()
		return errors.Join(first, second)
	}
	for name, tt := range map[string]struct {
		code    func(ctx *Context, n int) (int, error)
		timeout time.Duration
		lasts   time.Duration // after the second event
		want    string
	}{
		"Sleep": {func(ctx *Context, n int) (int, error) {
			return n, errors.Join(begun(ctx), ctx.Sleep(hour))
		}, 0, hour, "Completed 1"},
		"a fixed time": {func(ctx *Context, n int) (int, error) {
			until := ctx.Now().Add(hour + 10*time.Minute)
			err := begun(ctx)
			_, timer := Timer(ctx, until.Sub(ctx.Now())).Await()
			return n, errors.Join(err, timer)
		}, 0, hour, "Completed 1"},
		"time-out after continuing as new": {func(ctx *Context, n int) (int, error) {
			if n > 1 {
				return Event[int](ctx, "never").Await()
			}
			return 0, errors.Join(begun(ctx), ContinueAsNew(n+1))
		}, 30 * hour, 30 * hour, "Failed: the orchestration did not end by 2000-01-02T06:10:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w, ahead := newWorld(t), time.Duration(0)
				w.forgetful = true // each delivery replays
				rt := w.skewed(t, &ahead, NewOrchestrator("test", tt.code))
				s := startOf("a", 1)
				s.Timeout = tt.timeout
				mustRun(t, rt, s)
				ahead = 24 * time.Hour
				noError(t, errorOf(rt.Deliver(t.Context(), eventSignal("a", "e1", "number", "1"))))
				ahead = 0
				time.Sleep(10 * time.Minute)
				noError(t, errorOf(rt.Deliver(t.Context(), eventSignal("a", "e2", "number", "2"))))
				w.attend(t, rt, tt.lasts-time.Minute)
				wants(t, "before the time", mustGet(t, rt, "a").Status, Running)
				w.attend(t, rt, 10*time.Minute)
				wants(t, "after the time", stands(t, rt, "a"), tt.want)
				w.replays(t, rt)
			})
		})
	}
}
