package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// elsewherePause is for how long a sub-orchestration that runs in another process is left alone.
const elsewherePause = 5 * time.Second

// crew does in this process what one driver's orchestration has called. All but the attempts themselves happens on the
// driver's goroutine.
type crew struct {
	rt      *Runtime
	start   Start
	ctx     context.Context // of the attempts
	cancel  context.CancelFunc
	results chan result
	gone    chan struct{} // closed when nobody reads results any more

	execution *execution
	seen      int     // calls of the execution that have been looked at
	waiting   []*task // to be started, or timers to fire, when they are due
	running   int
}

// result is how an attempt ended.
type result struct {
	task   *task
	output json.RawMessage
	err    error
	// interrupted says that the attempt did not fail, but was called back.
	interrupted bool
	// broken says that the attempt did not fail, but could not be made: err is the driver's.
	broken bool
	// parked says that a sub-orchestration waits, until resumeAt or, when that is zero, for a signal.
	parked   bool
	resumeAt time.Time
}

func newCrew(ctx context.Context, rt *Runtime, s Start) *crew {
	c := &crew{rt: rt, start: s, results: make(chan result), gone: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// serve turns to another execution of the orchestration. Nothing of the one before may run any more.
func (c *crew) serve(x *execution) {
	c.execution, c.seen, c.waiting = x, 0, nil
}

// dispatch starts every attempt that is due. It gives the timers that are due, and when the next thing is; zero when
// there is none.
func (c *crew) dispatch() (fired []*task, next time.Time) {
	c.waiting = append(c.waiting, c.execution.tasks[c.seen:]...)
	c.seen = len(c.execution.tasks)
	now := c.rt.config.Now()
	if c.execution.deadline != 0 {
		next = fromMicros(c.execution.deadline)
	}
	later := c.waiting[:0]
	for _, t := range c.waiting {
		due := fromMicros(t.due)
		switch {
		case t.done, t.kind == eventTask: // events come by themselves
		case t.remote:
			later = append(later, t)
		case due.After(now):
			later = append(later, t)
			if next.IsZero() || due.Before(next) {
				next = due
			}
		case t.kind == timerTask:
			fired = append(fired, t)
		default:
			c.launch(t)
		}
	}
	clear(c.waiting[len(later):])
	c.waiting = later
	slices.SortStableFunc(fired, func(a, b *task) int { return fromMicros(a.due).Compare(fromMicros(b.due)) })
	return fired, next
}

// idleUntil says that nothing runs and that what is next comes as a signal, or is too far away to wait for here.
func (c *crew) idleUntil(ctx context.Context, next time.Time) bool {
	if c.running > 0 {
		return false
	}
	if next.IsZero() {
		return true
	}
	if c.rt.config.Queues != nil && next.Sub(c.rt.config.Now()) > c.rt.config.InlineWait {
		return true
	}
	deadline, bounded := ctx.Deadline()
	return bounded && next.After(deadline)
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
		if t.kind == childTask {
			r = c.child(t)
		} else {
			r = c.attempt(t, info)
		}
		r.interrupted = r.err != nil && c.ctx.Err() != nil
	}()
}

// child drives a sub-orchestration, in the time that its caller has. A failed one goes on when it is driven again.
func (c *crew) child(t *task) result {
	out, err := c.rt.Run(c.ctx, Start{ID: t.child, Orchestrator: t.name, Input: t.input, CorrelationID: c.start.CorrelationID, Parent: c.start.ID})
	switch {
	case errors.Is(err, ErrElsewhere):
		return result{task: t, parked: true, resumeAt: c.rt.config.Now().Add(elsewherePause)}
	case err != nil:
		return result{task: t, err: err, broken: true}
	case !out.Ended():
		return result{task: t, parked: true, resumeAt: out.ResumeAt}
	case out.Failure != nil:
		return result{task: t, err: out.Failure}
	default:
		return result{task: t, output: out.Output}
	}
}

// attempt runs an activity once.
func (c *crew) attempt(t *task, info ActivityInfo) result {
	a := c.rt.activities[t.name]
	if a == nil {
		return result{task: t, broken: true, err: fmt.Errorf("orchestration %s calls activity %q: %w", c.start.ID, t.name, ErrUnknownActivity)}
	}
	select {
	case c.rt.slots <- struct{}{}:
		defer func() { <-c.rt.slots }()
	case <-c.ctx.Done():
		return result{task: t, err: c.ctx.Err()}
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
	return result{task: t, output: output, err: err}
}

func (c *crew) info(t *task) ActivityInfo {
	return ActivityInfo{Orchestration: c.start.ID, Execution: c.execution.number, Task: t.number,
		Attempt: t.attempts + 1, CorrelationID: c.start.CorrelationID}
}

// back takes note that an attempt ended. Its task is started again when dispatch finds it neither done nor due later.
func (c *crew) back(r result) {
	c.running--
	if r.parked {
		r.task.remote = r.resumeAt.IsZero()
		r.task.due = max(0, r.resumeAt.UnixMicro())
	}
	c.waiting = append(c.waiting, r.task)
}

// rouse looks again at what waits for a signal: one has come.
func (c *crew) rouse() {
	for _, t := range c.waiting {
		t.remote = false
	}
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

// dismiss ends what still runs, so that nothing goes on behind a Run that has returned. What does not return within the
// grace period is left alone.
func (c *crew) dismiss() {
	for r := range c.recall() {
		c.back(r)
	}
	close(c.gone)
}
