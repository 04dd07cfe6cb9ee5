package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"
)

// crew runs the activities of one driver in this process. All but the attempts themselves happens on the driver's
// goroutine.
type crew struct {
	rt      *Runtime
	start   Start
	ctx     context.Context // of the attempts
	cancel  context.CancelFunc
	results chan result
	gone    chan struct{} // closed when nobody reads results any more

	execution *execution
	seen      int     // calls of the execution that have been looked at
	waiting   []*task // to be started when they are due
	running   int
}

// result is how an attempt ended.
type result struct {
	task   *task
	output json.RawMessage
	err    error
	// interrupted says that the attempt did not fail, but was called back.
	interrupted bool
}

func newCrew(ctx context.Context, rt *Runtime, s Start) *crew {
	c := &crew{rt: rt, start: s, results: make(chan result), gone: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// dispatch starts every attempt that is due, and says when the next one is; zero when none is left.
func (c *crew) dispatch(x *execution) (next time.Time) {
	c.execution = x
	c.waiting = append(c.waiting, x.tasks[c.seen:]...)
	c.seen = len(x.tasks)
	now := c.rt.config.Now()
	later := c.waiting[:0]
	for _, t := range c.waiting {
		due := fromMicros(t.due)
		switch {
		case t.done:
		case !due.After(now):
			c.launch(t)
		default:
			later = append(later, t)
			if next.IsZero() || due.Before(next) {
				next = due
			}
		}
	}
	clear(c.waiting[len(later):])
	c.waiting = later
	return next
}

// idleUntil says that nothing runs and that the next attempt is due only after ctx has ended.
func (c *crew) idleUntil(ctx context.Context, next time.Time) bool {
	deadline, bounded := ctx.Deadline()
	return c.running == 0 && bounded && next.After(deadline)
}

func (c *crew) launch(t *task) {
	c.running++
	info := c.info(t)
	go func() {
		r := result{task: t, err: errors.New("the activity called runtime.Goexit")}
		defer func() {
			select {
			case c.results <- r:
			case <-c.gone:
			}
		}()
		r.output, r.err = c.attempt(t, info)
		r.interrupted = r.err != nil && c.ctx.Err() != nil
	}()
}

// attempt runs an activity once.
func (c *crew) attempt(t *task, info ActivityInfo) (json.RawMessage, error) {
	a := c.rt.activities[t.name]
	if a == nil {
		return nil, Permanent(fmt.Errorf("activity %s is not registered in this process: add it to Config.Activities", t.name))
	}
	select {
	case c.rt.slots <- struct{}{}:
		defer func() { <-c.rt.slots }()
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
	ctx := context.WithValue(c.ctx, infoKey{}, info)
	if t.options.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.options.timeout, &timeoutError{t.options.timeout})
		defer cancel()
	}
	output, err := a.invoke(ctx, t.input)
	if timeout, ok := errors.AsType[*timeoutError](context.Cause(ctx)); ok && err != nil {
		err = fmt.Errorf("%w: %w", timeout, err)
	}
	return output, err
}

func (c *crew) info(t *task) ActivityInfo {
	return ActivityInfo{Orchestration: c.start.ID, Execution: c.execution.number, Task: t.number,
		Attempt: t.attempts + 1, CorrelationID: c.start.CorrelationID}
}

// back takes note that an attempt ended. Its task is started again when dispatch finds it neither done nor due later.
func (c *crew) back(r result) {
	c.running--
	c.waiting = append(c.waiting, r.task)
}

// recall tells the running attempts that their time is over and gives what they leave behind, as long as they return
// within the grace period. One that does not return is left alone; its result is dropped.
func (c *crew) recall() iter.Seq[result] {
	return func(yield func(result) bool) {
		c.cancel()
		grace := time.NewTimer(c.rt.config.Grace)
		defer grace.Stop()
		for c.running > 0 {
			select {
			case r := <-c.results:
				if !yield(r) {
					return
				}
			case <-grace.C:
				return
			}
		}
	}
}

// dismiss ends what still runs. Nobody waits for it.
func (c *crew) dismiss() {
	c.cancel()
	close(c.gone)
}
