package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/internal/lazyctx"
)

// elsewhereDelay is the time until a sub-orchestration that runs in another process is checked again.
const elsewhereDelay = 5 * time.Second

// executor runs the activities and sub-orchestrations called by one driver's orchestration, in this process.
// Everything but the attempts themselves runs on the driver's goroutine; an attempt may run there, too, see runHere.
type executor struct {
	rt      *Runtime
	start   Start
	ctx     lazyctx.Context // parent of the attempts' contexts
	results resultQueue

	execution *execution
	seen      int               // how many calls of the execution dispatch has seen
	waiting   []*task           // calls that are not started, and timers that have not fired
	inFlight  map[call]*attempt // the attempts that are running; nil before the first
	forgotten int               // how many attempts were forgotten
	idle      chan *attempt     // takes work for idle goroutines; nil without any
	lone      *attempt          // the only attempt in flight, which runs on the driver's goroutine; nil for none
	driver    *driver           // sees the progress of attempts; nil for an executor without a driver
}

// call identifies a call. The execution is part of it because consecutive executions use the same numbers.
type call struct{ execution, number int }

func (c *executor) call(t *task) call { return call{c.execution.number, t.number} }

func newExecutor(ctx context.Context, rt *Runtime, s Start) *executor {
	c := &executor{}
	c.init(ctx, rt, s)
	return c
}

// init comes before every other use.
func (c *executor) init(ctx context.Context, rt *Runtime, s Start) {
	c.rt, c.start = rt, s
	c.ctx.Init(ctx, time.Time{})
}

// cancel ends the running attempts and all later ones.
func (c *executor) cancel() { c.ctx.Cancel() }

// attach switches to another execution of the orchestration, or to a new copy of the same one after rounds of other
// processes were applied. Attempts of the same execution continue; those of another one are canceled.
func (c *executor) attach(x *execution) {
	if c.execution != nil && c.execution.number != x.number {
		for _, a := range c.inFlight {
			a.cancelable.Cancel()
		}
	}
	c.execution, c.seen, c.waiting = x, 0, nil
}

// forget cancels the attempts at uncommitted calls, which are calls of local activities. When rounds of other
// processes are applied, the numbers of these calls may belong to other calls.
func (c *executor) forget(committed int) {
	for running, a := range c.inFlight {
		if running.number > committed {
			delete(c.inFlight, running)
			c.forgotten++
			a.call.number = -c.forgotten
			c.inFlight[a.call] = a // no attempt outlives the driver, so the driver waits for its end
			a.cancelable.Cancel()
		}
	}
}

// dispatch starts every attempt that is due, and cancels those of interrupted calls. It returns the timers that are
// due, the activities that exceed this process's limit, and when the next call is due; zero when none is.
func (c *executor) dispatch() (fired, excess []*task, next time.Time) {
	c.cancelInterrupted()
	c.takeRecalled()
	if c.waiting == nil {
		c.waiting = make([]*task, 0, usualTasks)
	}
	c.waiting = append(c.waiting, c.execution.tasks[c.seen:]...)
	c.seen = len(c.execution.tasks)
	now := c.rt.config.Now()
	if c.execution.deadline != 0 {
		next = fromMicros(c.execution.deadline)
	}
	if stream, until := c.execution.nextHeld(); stream != "" && (next.IsZero() || until.Before(next)) {
		next = until
	}
	later := c.waiting[:0]
	for _, t := range c.waiting {
		due := fromMicros(t.due)
		switch {
		case t.done, t.sent, t.kind.outside(): // its result comes as a signal
		case t.joins != nil:
			later = append(later, t)
		case c.inFlight[c.call(t)] != nil: // its attempt is still running
		case c.execution.suspended && t.isOpenWork() && !t.begun, t.undoes > 0 && c.waitsForUndone(t):
			later = append(later, t)
		case t.remote, t.foreign:
			later = append(later, t)
		case due.After(now):
			later = append(later, t)
			if next.IsZero() || due.Before(next) {
				next = due
			}
		case t.kind == timerTask:
			fired = append(fired, t)
		case t.kind == activityTask && t.undoes == 0 && !t.options.local && len(c.inFlight) >= c.rt.config.MaxInlineActivities && c.rt.config.Queues != nil:
			excess, later = append(excess, t), append(later, t)
		default:
			c.launch(t)
		}
	}
	if len(fired)+len(excess) > 0 { // the driver has other work
		c.launchLone()
	}
	clear(c.waiting[len(later):])
	c.waiting = later
	slices.SortStableFunc(fired, func(a, b *task) int { return fromMicros(a.due).Compare(fromMicros(b.due)) })
	return fired, excess, next
}

// takeRecalled returns the activities that other processes no longer run to the waiting calls. Sent activities are not
// among these, so that a step costs as much as has changed, however many are sent.
func (c *executor) takeRecalled() {
	x := c.execution
	if len(x.recalled) == 0 {
		return
	}
	for _, t := range x.recalled {
		if t.number <= c.seen { // the others come with the calls that dispatch has not seen
			c.waiting = append(c.waiting, t)
		}
	}
	x.recalled = nil
	slices.SortStableFunc(c.waiting, func(a, b *task) int { return a.number - b.number })
	c.waiting = slices.Compact(c.waiting) // an activity that was recalled before dispatch ran is still in the list
}

// cancelInterrupted cancels the attempts of interrupted calls.
func (c *executor) cancelInterrupted() {
	if len(c.inFlight) == 0 || !c.execution.interrupts {
		return
	}
	for running, a := range c.inFlight {
		if t := c.execution.task(running.number); running.execution == c.execution.number && (t == nil || t.done) {
			a.cancelable.Cancel()
		}
	}
}

// idleUntil reports whether the driver may park. No attempt runs, and the next due call comes as a signal or is too
// far away to wait for in memory.
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

// launch starts an attempt. An activity that is the only one waits for takeLone, unless another attempt follows.
func (c *executor) launch(t *task) {
	c.launchLone()
	alone := len(c.inFlight) == 0 && t.kind == activityTask && c.driver != nil
	a := c.begin(t)
	if alone {
		c.lone = a
		return
	}
	c.runPooled(a)
}

// launchLone gives the attempt that waits for takeLone a goroutine of its own.
func (c *executor) launchLone() {
	if a := c.takeLone(); a != nil {
		c.runPooled(a)
	}
}

// takeLone returns the attempt that runs on the driver's goroutine; nil for none.
func (c *executor) takeLone() *attempt {
	a := c.lone
	c.lone = nil
	return a
}

// begin registers an attempt as running.
func (c *executor) begin(t *task) *attempt {
	a := &attempt{info: c.info(t), name: t.name, input: t.input, timeout: t.options.timeout, heartbeat: t.options.heartbeat, recorder: c}
	a.init(&c.ctx)
	a.undoable = t.options.undo != nil
	if undone := c.execution.task(t.undoes); undone != nil {
		a.undoes = ActivityInfo{Orchestration: c.start.ID, Execution: c.execution.number, Task: undone.number}.IdempotencyKey()
		if undone.kind == childTask && undone.canceled {
			a.undoesChild = undone.child
		}
	}
	if t.kind == childTask {
		child := c.childStart(t)
		a.child, t.begun = &child, true
	}
	if c.inFlight == nil {
		c.inFlight = map[call]*attempt{}
	}
	a.call = c.call(t)
	c.inFlight[a.call] = a
	return a
}

// run runs an attempt and posts its result.
func (c *executor) run(a *attempt) {
	r := result{err: errGoexit}
	defer func() { c.post(c.conclude(a, r)) }()
	r = c.perform(a)
}

func (c *executor) perform(a *attempt) result {
	if a.child != nil {
		return c.runChild(a, *a.child)
	}
	if a.undoesChild != "" {
		if ended, err := c.childEnded(a, a.undoesChild); err != nil || !ended {
			return result{parked: err == nil, broken: err != nil, err: err} // its end is a signal
		}
	}
	return c.rt.attempt(a)
}

// conclude ends the context of an attempt that has returned, and completes its result.
func (c *executor) conclude(a *attempt, r result) result {
	a.cancelable.Cancel()
	r.of, r.attempt = a, a.info.Attempt
	r.interrupted = r.err != nil && c.ctx.Err() != nil
	return r
}

// record posts the progress of an attempt that is running.
func (c *executor) record(a *attempt, progress json.RawMessage) {
	c.post(result{of: a, running: true, progress: progress})
	c.driver.handOver()
}

// runPooled runs an attempt on an idle goroutine, or on a new one. Goroutines are reused because a stack that has
// grown for one attempt is large enough for the next.
func (c *executor) runPooled(a *attempt) {
	if c.idle == nil {
		c.idle = make(chan *attempt)
	}
	select {
	case c.idle <- a:
		return
	default:
	}
	go c.work(a, c.idle)
}

func (c *executor) work(a *attempt, more <-chan *attempt) {
	for ok := true; ok; a, ok = <-more {
		c.run(a)
	}
}

// post passes a result to the driver, unless the executor is closed.
func (c *executor) post(r result) { c.results.put(r) }

// runChild drives a sub-orchestration within its caller's time. A sub-orchestration that parks is woken by its own
// messages and notifies its caller when it ends.
func (c *executor) runChild(ctx context.Context, s Start) result {
	err := c.rt.checkCallers(ctx, s)
	var out Outcome
	if err == nil {
		out, err = c.rt.runChild(ctx, s)
	}
	switch {
	case errors.Is(err, ErrElsewhere):
		return result{parked: true, resumeAt: c.rt.config.Now().Add(elsewhereDelay)}
	case errors.Is(err, ErrStalled), err != nil && ctx.Err() != nil: // the end of ctx means that the call was interrupted or timed out
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

// childStart returns the Start for the next attempt at a call of a sub-orchestration.
func (c *executor) childStart(t *task) Start {
	x := c.execution
	attempt := t.attempts + 1
	return Start{ID: t.child, Orchestrator: t.name, Input: t.input, CorrelationID: c.start.CorrelationID, TenantID: c.start.TenantID, Parent: c.start.ID,
		Timeout: t.options.timeout, Resume: t.begun || attempt > 1, WillRetry: attempt < t.options.retry.MaxAttempts, errors: t.options.errors.names(),
		Trace: c.callTrace(t, 0), named: t.options.id != "",
		call: &callRef{Execution: x.number, Task: t.number, Attempt: attempt, Since: max(x.base, x.undoneSince[t.child])}}
}

func (c *executor) info(t *task) ActivityInfo {
	return ActivityInfo{Orchestration: c.start.ID, Execution: c.execution.number, Task: t.number,
		Attempt: t.attempts + 1, CorrelationID: c.start.CorrelationID, TenantID: c.start.TenantID, Progress: t.progress,
		Trace: c.callTrace(t, t.attempts+1)}
}

// attemptReturned processes the end of an attempt and returns its call; nil when the call belongs to another
// execution. dispatch starts the call again when it is neither done nor due later.
func (c *executor) attemptReturned(r result) *task {
	if !r.running {
		delete(c.inFlight, r.of.call)
	}
	if r.of.call.execution != c.execution.number {
		return nil
	}
	t := c.execution.task(r.of.call.number)
	if r.running {
		return t
	}
	if t == nil || r.broken {
		return t // an attempt that cannot be made here waits for another Run
	}
	if r.parked {
		t.remote = r.resumeAt.IsZero() && !t.endedMeanwhile
		t.due = max(0, r.resumeAt.UnixMicro())
		c.execution.waiting.noteDue(t)
	}
	t.endedMeanwhile = false
	c.waiting = append(c.waiting, t)
	return t
}

// recheckChild makes dispatch recheck a sub-orchestration that has ended.
func (c *executor) recheckChild(id string) {
	if t := cmp.Or(c.execution.openChild(id), c.execution.undoOfChild(id)); t != nil {
		t.remote, t.foreign, t.rival, t.begun = false, false, false, true
		t.endedMeanwhile = c.inFlight[c.call(t)] != nil
	}
}

// openChild returns the open call of the sub-orchestration with this id; nil for none.
func (x *execution) openChild(id string) *task {
	for _, t := range x.openChildren {
		if t.child == id && !t.done {
			return t
		}
	}
	return nil
}

// recheckHeld makes dispatch check the calls again that a suspension may have held back, because the message of the
// driver that made them may be acknowledged by now.
func (c *executor) recheckHeld() {
	now := c.rt.config.Now().UnixMicro()
	for _, t := range c.execution.tasks {
		if t.isOpenWork() || t.open() && t.due != 0 && t.due <= now {
			t.foreign, t.rival = false, false
		}
	}
}

// recheckAll makes dispatch check all calls again, including those that other drivers were responsible for: the signal
// may be the last message for this orchestration.
func (c *executor) recheckAll() {
	for _, t := range c.execution.tasks {
		t.remote, t.foreign, t.rival = false, false, false
	}
}

// drain cancels the running attempts and yields the results that arrive within the grace period. A function that does
// not return in time is abandoned; its result is dropped.
func (c *executor) drain() iter.Seq[result] {
	return func(yield func(result) bool) {
		if c.cancel(); len(c.inFlight) == 0 {
			return
		}
		grace := time.NewTimer(c.rt.config.Grace)
		defer grace.Stop()
		for len(c.inFlight) > 0 {
			if r, ok := c.results.take(); ok {
				if !yield(r) {
					return
				}
				continue
			}
			select {
			case <-c.results.waiting():
			case <-grace.C:
				return
			}
		}
	}
}

// close ends the running attempts, so that nothing continues after Run has returned. Functions that do not return
// within the grace period are abandoned.
func (c *executor) close() {
	for r := range c.drain() {
		c.attemptReturned(r)
	}
	c.results.close()
	if c.idle != nil {
		close(c.idle)
	}
}
