package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/tables"
)

// driver runs one orchestration from the end of its committed rounds until it comes to rest. A process has at most one
// driver for an orchestration. Until finished is closed, all fields but finished and holder belong to the goroutine
// that runs the driver.
type driver struct {
	position

	rt       *Runtime
	request  Start // the Start that it was made for
	start    Start // the same, or the Start of the orchestration that a signal found
	executor *executor

	buffers      *roundBuffers // of this driver until it has finished; nil before the first commit
	row          statusColumns // the columns of the status row, which are in the buffers
	committed    int           // number of rounds that this driver has committed
	conflicts    int           // how many rounds other processes committed first
	node         string        // name of this process when the driver was made
	release      func()        // ends the Hold on the orchestration
	responsible  string        // node that was responsible for the open calls in the status row that was loaded
	requiredETag string        // ETag that the status row must have at the first commit; "" for any
	unconfirmed  *round        // the last round that was loaded: its effects may be missing
	status       tables.Entity // the status row that was loaded
	repeated     bool          // this driver has repeated the effects of unconfirmed

	codeless           bool   // the orchestrator's function does not run
	statusETag         string // ETag of the status row that was loaded
	storedCustomStatus string // custom status in the row that was loaded
	lastSignal         string // id of the signal that was applied last, by this driver or before it
	waitsForEnd        bool   // a sub-orchestration still runs for an earlier call
	notifiesParent     bool   // the caller gets a signal at the end, although it also waits in memory
	lateSignal         bool   // a signal came after the end and did not change the outcome
	blocked            error  // set when another driver of this process has found the function blocked
	watchdog           *watchdog
	lookout            lookout
	sentAgain          bool // messages may be lost, so everything is sent again

	ctx    context.Context // of the caller that made the driver run
	holder holder          // the goroutine that runs the driver

	inbox          []*delivery   // guarded by rt.mu
	inboxReady     chan struct{} // receives when the inbox is not empty
	staleTimer     bool          // a timer signal came that is no longer needed
	timerCame      bool          // a timer signal came
	unacknowledged []*delivery   // signals that were read and are not committed

	learned           []event   // applied, not committed
	decisionsAfter    []int     // how many decisions there were after each learned event
	leftoverDecisions int       // decisions of a divided turn whose event is committed
	commitBy          time.Time // when the learned events have to be committed
	commitNow         bool      // they have to be committed now

	checkTasks bool // people may have completed human tasks

	callErr error // error of a call that cannot be made; attempts that run come first

	pastOutcome *Outcome // outcome of the requested run when another run has the id since: nothing is left to drive

	own struct { // storage of executor and watchdog for a driver that runs
		executor executor
		watchdog watchdog
	}

	finished chan struct{}
	outcome  Outcome
	err      error
}

func newDriver(r *Runtime, s Start, o AnyOrchestrator) *driver {
	return &driver{rt: r, request: s, start: s, position: position{orchestrator: o}, node: r.Node(), finished: make(chan struct{}), inboxReady: make(chan struct{}, 1)}
}

// run drives the orchestration and finishes the driver. It has a goroutine of its own, because the watchdog may end
// it, or Goexit in a condition of WaitUntil.
func (d *driver) run(ctx context.Context) {
	d.executor, d.watchdog = &d.own.executor, &d.own.watchdog
	d.executor.init(ctx, d.rt, d.start)
	d.executor.driver = d
	d.watchdog.init(d, ctx)
	d.ctx = ctx
	d.driveHere((*driver).drive)
}

// driveHere drives the orchestration on this goroutine. It finishes the driver, unless another goroutine has taken
// over.
func (d *driver) driveHere(drive func(*driver, context.Context) (Outcome, error)) {
	var out Outcome
	var err error
	mine, returned := d.holder.current(), false
	defer func() {
		if !returned {
			err = fmt.Errorf("orchestration %s: a condition of the orchestrator called runtime.Goexit", d.start.ID)
		}
		if d.holder.current() == mine {
			d.leave(out, err)
		}
	}()
	out, err = drive(d, d.ctx)
	returned = true
}

// leave finishes the driver.
func (d *driver) leave(out Outcome, err error) {
	defer func() {
		if err != nil && d.committed > 0 {
			d.indexForSweeper(d.ctx)
		}
		d.rt.finish(d, out, err)
	}()
	defer d.releaseBuffers()
	defer d.executor.close()
	defer d.watchdog.stop()
	if atRest := err == nil && out.Woken; d.execution != nil && !(atRest && d.keep()) {
		d.execution.close()
	}
}

// drive runs the orchestration until it comes to rest, and stalls it when its code cannot continue.
func (d *driver) drive(ctx context.Context) (Outcome, error) {
	if d.blocked != nil {
		return d.stall(ctx, d.blocked)
	}
	return d.orStall(ctx, (*driver).advance)
}

// orStall calls advance, and stalls the orchestration when its code cannot continue.
func (d *driver) orStall(ctx context.Context, advance func(*driver, context.Context) (Outcome, error)) (Outcome, error) {
	out, err := advance(d, ctx)
	if isStall(err) {
		return d.stall(ctx, err)
	}
	return out, err
}

// advance opens the orchestration and runs it until it comes to rest.
func (d *driver) advance(ctx context.Context) (Outcome, error) {
	if err := d.open(ctx); err != nil {
		return Outcome{}, asElsewhere(err)
	}
	if d.pastOutcome != nil {
		return *d.pastOutcome, nil
	}
	if d.waitsForEnd {
		out := d.summary()
		out.Woken = true
		return out, nil
	}
	if err := d.takeOver(ctx); err != nil {
		return Outcome{}, err
	}
	out, err := d.steps(ctx)
	if err == nil {
		d.noteEffects(ctx)
	}
	return out, err
}

// steps runs the orchestration step by step until it comes to rest.
func (d *driver) steps(ctx context.Context) (Outcome, error) {
	for {
		out, done, err := d.step(ctx)
		if done || err != nil {
			return out, err
		}
	}
}

// step commits all pending events and decisions and learns the next event. done reports that the orchestration is at
// rest.
func (d *driver) step(ctx context.Context) (out Outcome, done bool, err error) {
	if next := d.continuation(); next != nil {
		if err := d.continueAsNew(ctx, *next); err != nil {
			return out, false, asElsewhere(err)
		}
	}
	if err := d.prepare(ctx); err != nil {
		return out, false, err
	}
	if d.mustCommit() {
		if err := d.commit(ctx); err != nil {
			return out, false, asElsewhere(err)
		}
	}
	if err := d.lookForOthers(ctx); err != nil {
		return out, false, err
	}
	if len(d.execution.elsewhere) > 0 && !d.execution.ended {
		if err := d.learnReturns(); err != nil {
			return out, false, err
		}
	}
	switch {
	case d.pastOutcome != nil:
		return *d.pastOutcome, true, nil
	case d.ended():
		out, err = d.finishEnded(ctx)
		return out, true, err
	case ctx.Err() != nil:
		out, err = d.park(ctx, d.rt.config.Now())
		return out, true, err
	case d.continuation() != nil:
		return out, false, nil
	case d.overdue():
		return out, false, d.learn(event{Kind: executionTimedOut})
	}
	if stream, until := d.execution.nextHeld(); stream != "" && !until.After(d.rt.config.Now()) {
		return out, false, d.learn(event{Kind: overtakersReleased, Signal: &signalDetails{Stream: stream}})
	}
	fired, excess, next := d.executor.dispatch()
	nothing := len(fired)+len(excess) == 0
	if nothing && len(d.executor.inFlight) == 0 {
		if released, err := d.releaseAtRest(); released || err != nil {
			return out, false, err
		}
	}
	switch {
	case d.callErr != nil && nothing && len(d.executor.inFlight) == 0:
		out, err = d.park(ctx, d.rt.config.Now())
		return out, true, err
	case nothing && d.executor.idleUntil(ctx, next) && len(d.learned) == 0 && !d.hasSignals():
		out, err = d.park(ctx, next)
		return out, true, err
	case nothing && d.executor.idleUntil(ctx, next):
		d.commitNow = len(d.learned) > 0 // the commit may bring rounds of other processes, and with them work for this one
		return out, false, nil
	}
	return out, false, d.proceed(ctx, fired, excess, next)
}

// finishEnded leaves an execution that has ended. If the execution is Retrying, the orchestration goes into the index,
// so that the sweeper makes the next attempt if the message for it is lost.
func (d *driver) finishEnded(ctx context.Context) (Outcome, error) {
	out := d.summary()
	if out.Status != Retrying || d.committed == 0 || d.lateSignal || out.Parent != "" || d.rt.config.Queues == nil {
		return out, nil
	}
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	return out, d.rt.addParked(ctx, d.rt.recheckLater(d.start.ID))
}

// prepare learns everything that needs no waiting: signals, people's answers, and results of the previous attempt.
func (d *driver) prepare(ctx context.Context) error {
	if err := d.readInbox(); err != nil {
		return err
	}
	if d.execution.held && !d.execution.ended {
		if err := d.learn(event{Kind: executionReleased}); err != nil {
			return err
		}
	}
	if d.execution.stalled && !d.execution.ended {
		if err := d.recover(); err != nil {
			return err
		}
	}
	if d.checkTasks {
		if err := d.learnAnswers(ctx); err != nil {
			return err
		}
	}
	if err := d.endJoined(); err != nil {
		return err
	}
	return d.reusePrior()
}

// endJoined ends the calls that joined a call which has ended, with the same outcome.
func (d *driver) endJoined() error {
	for i := 0; i < len(d.execution.openChildren); {
		t := d.execution.openChildren[i]
		if t.joins == nil || !t.joins.done {
			i++
			continue
		}
		first := t.joins
		if t.joins = nil; first.canceled || first.undone {
			continue // this call continues by itself
		}
		e := event{Kind: childCompleted, Task: t.number, Payload: first.output}
		if first.err != nil {
			e = event{Kind: childFailed, Task: t.number, Attempt: first.attempts, Failure: first.failure}
		}
		if err := d.learn(e); err != nil {
			return err
		}
		i = 0 // the learned event may have led to other calls
	}
	return nil
}

// takeOver determines the calls that this driver is responsible for. A driver that only brings new signals leaves
// existing calls alone: the driver that made them has a message that is not acknowledged until they are done. Any
// other driver may hold the last message for these calls, perhaps after a process died in the middle. It is
// responsible for all of them.
func (d *driver) takeOver(ctx context.Context) error {
	d.checkTasks = !d.start.deliver
	if d.start.deliver && d.inboxBringsOnlyNew() {
		for _, t := range d.execution.tasks {
			t.foreign = true
		}
		if d.inboxIsFromOthers() {
			return nil // nothing depends on these signals yet, and a commit repeats the effects before it
		}
	}
	return d.repeatEffects(ctx) // once the next round is committed, no process can detect that this round's effects are missing
}

// overdue reports whether the execution's timeout has passed.
func (d *driver) overdue() bool {
	deadline := d.execution.deadline
	return deadline != 0 && d.rt.config.Now().UnixMicro() >= deadline
}

// proceed learns the timers that have fired and the activities to send, or waits for the next result.
func (d *driver) proceed(ctx context.Context, fired, excess []*task, next time.Time) error {
	if len(fired)+len(excess) == 0 {
		return d.waitForResults(ctx, next)
	}
	if len(excess) > 0 {
		sent := event{Kind: activitiesSent, Target: &target{}}
		for _, t := range excess {
			sent.Target.Tasks = append(sent.Target.Tasks, t.number)
		}
		if err := d.learn(sent); err != nil {
			return err
		}
	}
	for _, t := range fired {
		at, err := marshal(fromMicros(t.due))
		if err != nil {
			return err
		}
		if err := d.learn(event{Kind: timerFired, Task: t.number, Payload: at}); err != nil {
			return err
		}
	}
	return nil
}

// learn applies an event to the execution, with the current time.
func (d *driver) learn(e event) error {
	e = e.clean()
	e.At = d.execution.tick()
	now := d.rt.config.Now()
	recorded := e.Kind != attemptFailed && max(d.execution.rules, e.start().Rules) >= rules3
	if recorded && fromMicros(e.At).Sub(now) > clockAhead {
		e.Due = now.UnixMicro() // see event.clock
	}
	if len(d.learned) == 0 {
		d.commitBy = now.Add(d.rt.config.Linger)
	}
	d.learned = appendEvent(d.learned, e)
	d.commitNow = d.commitNow || e.Kind == activitiesSent
	err := d.execution.apply(e)
	d.decisionsAfter = append(d.decisionsAfter, len(d.execution.decided))
	return err
}

// mustCommit reports whether the learned events have to be committed now. Results that lead to no decision, or only to
// calls of local activities, may wait for others.
func (d *driver) mustCommit() bool {
	if d.execution.decidedMore() || len(d.unacknowledged) > 0 || d.commitNow {
		return true
	}
	return len(d.learned) > 0 &&
		(len(d.learned) >= d.rt.config.LingerResults || !d.rt.config.Now().Before(d.commitBy))
}

// waitForResults learns all results that have arrived. Without any, it waits for one until next, or until the learned
// events have to be committed.
func (d *driver) waitForResults(ctx context.Context, next time.Time) error {
	wake := next
	if len(d.learned) > 0 && (wake.IsZero() || d.commitBy.Before(wake)) {
		wake = d.commitBy
	}
	if look := d.lookAt(d.rt.config.Now()); !look.IsZero() && (wake.IsZero() || look.Before(wake)) {
		wake = look
	}
	if a := d.executor.takeLone(); a != nil {
		return d.runHere(ctx, a, wake)
	}
	if any, err := d.learnResults(); any || err != nil {
		return err
	}
	var timer <-chan time.Time
	if !wake.IsZero() {
		t := time.NewTimer(max(wake.Sub(d.rt.config.Now()), 1)) // see internal/outage, await
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case <-d.inboxReady:
	case <-d.executor.results.waiting():
		_, err := d.learnResults()
		return err
	}
	return nil
}

// learnResults learns the results that have arrived, as many as fit in one round, and reports whether there were any.
func (d *driver) learnResults() (any bool, err error) {
	for err == nil && (!any || len(d.learned) < d.rt.config.LingerResults) {
		r, ok := d.executor.results.take()
		if !ok {
			return any, nil
		}
		any, err = true, d.learnResult(r)
	}
	return any, err
}

// learnResult learns the outcome of an attempt, or its progress.
func (d *driver) learnResult(r result) error {
	t := d.executor.attemptReturned(r)
	switch {
	case r.broken:
		if d.callErr == nil {
			d.callErr = r.err
		}
		return nil
	case t == nil || t.done || r.interrupted || r.parked:
		return nil
	case r.running:
		return d.learn(event{Kind: activityProgressed, Task: t.number, Payload: r.progress})
	case r.err == nil:
		return d.learn(event{Kind: t.kind.completion(), Task: t.number, Payload: r.output})
	}
	if r.attempt != t.attempts+1 {
		return nil // another process has recorded the failure of this attempt
	}
	failure := failureOf(r.err)
	t.options.errors.record(failure, r.err)
	return d.learnFailure(t, failure, r.progress)
}

// learnFailure learns that an attempt failed, and whether another one follows.
func (d *driver) learnFailure(t *task, f *Failure, progress json.RawMessage) error {
	if progress != nil {
		if err := d.learn(event{Kind: activityProgressed, Task: t.number, Payload: progress}); err != nil {
			return err
		}
	}
	attempt := t.attempts + 1
	due, again := t.retryAt(f, attempt, d.rt.config.Now(), d.executor.info(t).IdempotencyKey())
	if !again {
		return d.learn(event{Kind: t.kind.failure(), Task: t.number, Attempt: attempt, Failure: f})
	}
	return d.learn(event{Kind: attemptFailed, Task: t.number, Attempt: attempt, Failure: f, Due: due.UnixMicro()})
}
