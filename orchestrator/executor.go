package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"
)

// elsewhereDelay is for how long a sub-orchestration that runs in another process is left alone.
const elsewhereDelay = 5 * time.Second

// resultBuffer is how many results wait for the driver before those who bring more wait for it.
const resultBuffer = 64

// executor does in this process what one driver's orchestration has called. All but the attempts themselves happens on the
// driver's goroutine.
type executor struct {
	rt      *Runtime
	start   Start
	ctx     context.Context // of the attempts
	cancel  context.CancelFunc
	results chan result
	closed  chan struct{} // closed when nobody reads results any more

	execution *execution
	seen      int                         // calls of the execution that have been looked at
	waiting   []*task                     // to be started, or timers to fire, when they are due
	inFlight  map[call]context.CancelFunc // attempts that run
	idle      chan func()                 // to goroutines that have nothing to do
}

// call names a call; executions that follow each other use the same numbers.
type call struct{ execution, number int }

func (c *executor) call(t *task) call { return call{c.execution.number, t.number} }

// result is how an attempt ended, or how far it is.
type result struct {
	execution, number int // the call
	attempt           int
	output            json.RawMessage
	err               error
	// running says that the attempt goes on: progress is how far it is. After a failure, it is how far it came.
	running  bool
	progress json.RawMessage
	// interrupted says that the attempt did not fail, but was called back.
	interrupted bool
	// broken says that the attempt did not fail, but could not be made: err is the driver's.
	broken bool
	// parked says that a sub-orchestration waits, until resumeAt or, when that is zero, for a signal.
	parked   bool
	resumeAt time.Time
}

func newExecutor(ctx context.Context, rt *Runtime, s Start) *executor {
	c := &executor{rt: rt, start: s, results: make(chan result, resultBuffer), closed: make(chan struct{}), idle: make(chan func()), inFlight: map[call]context.CancelFunc{}}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// attach turns to another execution of the orchestration, or to the same as other rounds have it: what runs for it runs
// on. What runs for another one is called back.
func (c *executor) attach(x *execution) {
	if c.execution != nil && c.execution.number != x.number {
		for _, cancel := range c.inFlight {
			cancel()
		}
	}
	c.execution, c.seen, c.waiting = x, 0, nil
}

// dispatch starts every attempt that is due, and calls those back that nobody wants any more. It gives the timers that are
// due, the activities that are too many for this process, and when the next thing is; zero when there is none.
func (c *executor) dispatch() (fired, excess []*task, next time.Time) {
	c.cancelInterrupted()
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
		case t.done, t.kind.outside(): // that comes by itself
		case c.inFlight[c.call(t)] != nil: // it comes back
		case c.execution.suspended && t.isOpenWork() && !t.begun, t.undoes > 0 && c.inFlight[call{c.execution.number, t.undoes}] != nil:
			later = append(later, t)
		case t.remote, t.sent, t.foreign:
			later = append(later, t)
		case due.After(now):
			later = append(later, t)
			if next.IsZero() || due.Before(next) {
				next = due
			}
		case t.kind == timerTask:
			fired = append(fired, t)
		case t.kind == activityTask && len(c.inFlight) >= c.rt.config.MaxInlineActivities && c.rt.config.Queues != nil:
			excess, later = append(excess, t), append(later, t)
		default:
			c.launch(t)
		}
	}
	clear(c.waiting[len(later):])
	c.waiting = later
	slices.SortStableFunc(fired, func(a, b *task) int { return fromMicros(a.due).Compare(fromMicros(b.due)) })
	return fired, excess, next
}

// cancelInterrupted cancels the attempts whose calls have been interrupted.
func (c *executor) cancelInterrupted() {
	if len(c.inFlight) == 0 || !c.execution.interrupts {
		return
	}
	for running, cancel := range c.inFlight {
		if t := c.execution.task(running.number); running.execution == c.execution.number && (t == nil || t.done) {
			cancel()
		}
	}
}

// idleUntil says that nothing runs and that what is next comes as a signal, or is too far away to wait for here.
func (c *executor) idleUntil(ctx context.Context, next time.Time) bool {
	if len(c.inFlight) > 0 {
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

func (c *executor) launch(t *task) {
	ctx, cancel := context.WithCancel(c.ctx)
	c.inFlight[c.call(t)] = cancel
	info, execution := c.info(t), c.execution.number
	var child Start
	if t.kind == childTask {
		child, t.begun = c.childStart(t), true
	}
	c.runPooled(func() {
		r := result{err: errors.New("the activity called runtime.Goexit")}
		defer func() {
			cancel()
			r.execution, r.number, r.attempt = execution, info.Task, info.Attempt
			r.interrupted = r.err != nil && c.ctx.Err() != nil
			c.post(r)
		}()
		if t.kind == childTask {
			r = c.runChild(ctx, child)
			return
		}
		r = c.rt.attempt(ctx, attempt{info: info, name: t.name, input: t.input, timeout: t.options.timeout, heartbeat: t.options.heartbeat,
			record: func(progress json.RawMessage) {
				c.post(result{execution: execution, number: info.Task, running: true, progress: progress})
			}})
	})
}

// runPooled runs f on a goroutine that has nothing to do, or on a new one: a goroutine that has run an attempt has a stack that
// suits the next.
func (c *executor) runPooled(f func()) {
	select {
	case c.idle <- f:
		return
	default:
	}
	go func() {
		for {
			f()
			select {
			case f = <-c.idle:
			case <-c.closed:
				return
			}
		}
	}()
}

// post hands a result to the driver, if it still reads them.
func (c *executor) post(r result) {
	select {
	case c.results <- r:
	case <-c.closed:
	}
}

// runChild drives a sub-orchestration, in the time that its caller has, or hears how it ended. One that is to go on later
// sees to that by itself and tells its caller when it ends.
func (c *executor) runChild(ctx context.Context, s Start) result {
	out, err := c.rt.runChild(ctx, s)
	switch {
	case errors.Is(err, ErrElsewhere):
		return result{parked: true, resumeAt: c.rt.config.Now().Add(elsewhereDelay)}
	case errors.Is(err, ErrStalled), err != nil && ctx.Err() != nil: // it is not wanted any more, or not now
		return result{parked: true}
	case errors.Is(err, ErrConflict):
		return result{err: Permanent(err)}
	case err != nil:
		return result{err: err, broken: true}
	case !out.Ended() && out.Status != Retrying:
		if out.Woken {
			return result{parked: true}
		}
		return result{parked: true, resumeAt: out.ResumeAt}
	case out.Failure != nil:
		return result{err: out.Failure}
	default:
		return result{output: out.Output}
	}
}

// childStart is the attempt at a call of a sub-orchestration that is due.
func (c *executor) childStart(t *task) Start {
	x := c.execution
	attempt := t.attempts + 1
	return Start{ID: t.child, Orchestrator: t.name, Input: t.input, CorrelationID: c.start.CorrelationID, Parent: c.start.ID,
		Timeout: t.options.timeout, Resume: t.begun || attempt > 1, WillRetry: attempt < t.options.retry.MaxAttempts, errors: t.options.errors.names(),
		call: &callRef{Execution: x.number, Task: t.number, Attempt: attempt, Since: max(x.base, x.undoneSince[t.child])}}
}

func (c *executor) info(t *task) ActivityInfo {
	return ActivityInfo{Orchestration: c.start.ID, Execution: c.execution.number, Task: t.number,
		Attempt: t.attempts + 1, CorrelationID: c.start.CorrelationID, Progress: t.progress}
}

// attemptReturned takes note that an attempt ended, and gives its call; nil when the call is another execution's. The call is started
// again when dispatch finds it neither done nor due later.
func (c *executor) attemptReturned(r result) *task {
	if !r.running {
		delete(c.inFlight, call{r.execution, r.number})
	}
	if r.execution != c.execution.number {
		return nil
	}
	t := c.execution.task(r.number)
	if r.running {
		return t
	}
	if t == nil || r.broken {
		return t // what cannot be made here waits for another Run
	}
	if r.parked {
		t.remote = r.resumeAt.IsZero() && !t.endedMeanwhile
		t.due = max(0, r.resumeAt.UnixMicro())
	}
	t.endedMeanwhile = false
	c.waiting = append(c.waiting, t)
	return t
}

// recheckChild looks again at a sub-orchestration that has ended.
func (c *executor) recheckChild(id string) {
	if t := c.execution.openChild(id); t != nil {
		t.remote, t.foreign, t.rival, t.begun = false, false, false, true
		t.endedMeanwhile = c.inFlight[c.call(t)] != nil
	}
}

// openChild is the call of the sub-orchestration that goes on; nil for none.
func (x *execution) openChild(id string) *task {
	for _, t := range x.openChildren {
		if t.child == id && !t.done {
			return t
		}
	}
	return nil
}

// recheckHeld looks again at what a suspension may have held back: whoever called it need not have a message any more.
func (c *executor) recheckHeld() {
	now := c.rt.config.Now().UnixMicro()
	for _, t := range c.execution.tasks {
		if t.isOpenWork() || t.open() && t.due != 0 && t.due <= now {
			t.foreign, t.rival = false, false
		}
	}
}

// recheckAll looks again at everything, whoever secured it before: the signal that has come may be the last that does.
func (c *executor) recheckAll() {
	for _, t := range c.execution.tasks {
		t.remote, t.foreign, t.rival = false, false, false
	}
}

// drain tells the running attempts that their time is over and gives what they leave behind, as long as they return
// within the grace period. One that does not return is left alone; its result is dropped.
func (c *executor) drain() iter.Seq[result] {
	return func(yield func(result) bool) {
		c.cancel()
		grace := time.NewTimer(c.rt.config.Grace)
		defer grace.Stop()
		for len(c.inFlight) > 0 {
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

// close ends what still runs, so that nothing goes on behind a Run that has returned. What does not return within the
// grace period is left alone.
func (c *executor) close() {
	for r := range c.drain() {
		c.attemptReturned(r)
	}
	close(c.closed)
}
