package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// driver takes one orchestration from where its rounds end as far as it can go. There is at most one for an
// orchestration in a process; all its fields but finished belong to the goroutine that runs it, until finished closes.
type driver struct {
	rt           *Runtime
	request      Start // what it was made for, for those who meet it
	start        Start // the same, or of what a signal found
	orchestrator AnyOrchestrator
	executor     *executor

	execution      *execution
	rounds         []round // of this execution, committed
	version        int     // rounds of all executions
	reportedStatus Status  // after the last round, "" before the first
	committed      int     // rounds that this driver has added
	createdAt      time.Time
	latestEventAt  int64 // time of the latest event that was found, in microseconds
	marker         executionMarker
	previousMarker executionMarker // of the execution before
	obsoleteRows   []string        // rows of executions that nobody needs any more
	previousRows   []string        // rows that are, when this execution continues as new
	obsoleteBlobs  []int           // executions in these rows which blobs hold something of
	blobs          bool            // hold something of this execution
	earlier        []Outcome
	prior          priorResults
	lookedUp       int             // calls of this execution that the memo has seen
	matched        []matchedResult // results of the memo that calls are about to get
	known          int             // calls of this execution that are committed
	conflicts      int             // rounds that others committed first
	requiredETag   string          // that the status has to have at the first commit; "" for any
	unconfirmed    *round          // the last round that it found, whose effects may be missing

	codeless           bool   // the orchestrator's function takes no part
	statusETag         string // ETag of the status row that was found
	storedCustomStatus string // the custom status that it has
	waitsForEnd        bool   // a sub-orchestration still runs for an earlier call
	notifiesParent     bool   // the caller is told of the end, although it asks for it itself
	lateSignal         bool   // a signal came after the end, and had no part in it
	blocked            error  // the function did not come back in another driver of this process
	watchdog           *watchdog

	inbox          []*delivery   // guarded by rt.mu
	inboxReady     chan struct{} // says that the inbox is not empty
	staleTimer     bool          // a signal of a timer came that nobody waits for any more
	timerSignaled  bool          // a signal of a timer came
	unacknowledged []*delivery   // read, not committed

	learned           []event   // applied, not committed
	decisionsAfter    []int     // how many decisions there were after each of them
	leftoverDecisions int       // decisions of a divided turn whose event is committed
	commitBy          time.Time // when they have to be
	commitNow         bool      // they have to be now

	checkTasks bool // people may have answered

	callErr error // of a call that cannot be made; what else runs comes first

	pastOutcome *Outcome // of the run that was asked for, when another has the id since: nothing is left to drive

	finished chan struct{}
	outcome  Outcome
	err      error
}

func newDriver(r *Runtime, s Start, o AnyOrchestrator) *driver {
	return &driver{rt: r, request: s, start: s, orchestrator: o, finished: make(chan struct{}), inboxReady: make(chan struct{}, 1)}
}

// run drives and leaves. It has a goroutine of its own, because user code may end it with Goexit.
func (d *driver) run(ctx context.Context) {
	var out Outcome
	err := fmt.Errorf("orchestration %s: the orchestrator called runtime.Goexit", d.start.ID)
	defer func() {
		if err != nil && d.committed > 0 {
			d.indexForSweeper(ctx)
		}
		d.rt.finish(d, out, err)
	}()
	d.executor = newExecutor(ctx, d.rt, d.start)
	defer d.executor.close()
	d.watchdog = newWatchdog(d, ctx)
	defer d.watchdog.stop()
	defer func() {
		if d.execution != nil {
			d.execution.close()
		}
	}()
	out, err = d.drive(ctx)
}

// drive takes the orchestration as far as it goes. Code that cannot go on stalls it.
func (d *driver) drive(ctx context.Context) (Outcome, error) {
	if d.blocked != nil {
		return d.stall(ctx, d.blocked)
	}
	out, err := d.advance(ctx)
	if isStall(err) {
		return d.stall(ctx, err)
	}
	return out, err
}

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
	for {
		out, done, err := d.step(ctx)
		if done || err != nil {
			return out, err
		}
	}
}

// step commits what there is to commit, and learns what there is to learn next. It says when the orchestration is at rest.
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
	fired, excess, next := d.executor.dispatch()
	nothing := len(fired)+len(excess) == 0
	switch {
	case d.callErr != nil && nothing && len(d.executor.inFlight) == 0:
		out, err = d.park(ctx, d.rt.config.Now())
		return out, true, err
	case nothing && d.executor.idleUntil(ctx, next) && len(d.learned) == 0 && !d.hasSignals():
		out, err = d.park(ctx, next)
		return out, true, err
	case nothing && d.executor.idleUntil(ctx, next):
		d.commitNow = len(d.learned) > 0 // what others committed meanwhile can give this process something to do
		return out, false, nil
	}
	return out, false, d.proceed(ctx, fired, excess, next)
}

// finishEnded leaves an execution that has ended. Should the message be lost that brings the next attempt, the sweeper makes it.
func (d *driver) finishEnded(ctx context.Context) (Outcome, error) {
	out := d.summary()
	if out.Status != Retrying || d.committed == 0 || d.lateSignal || out.Parent != "" || d.rt.config.Queues == nil {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return out, d.rt.addParked(ctx, d.rt.recheckLater(d.start.ID))
}

// prepare learns what is there without waiting.
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
	return d.reusePrior()
}

// takeOver finds out what this driver has to see to. A driver that only brings something new to an orchestration leaves
// alone what the orchestration had called already: whoever called it has a message that is not acknowledged until it is
// done. Any other driver may be the last that knows of it, and may come after one that died in the middle.
func (d *driver) takeOver(ctx context.Context) error {
	d.checkTasks = !d.start.deliver
	if d.start.deliver && d.inboxBringsNothing() {
		for _, t := range d.execution.tasks {
			t.foreign = true
		}
		return nil // what came had no part in what is, so nothing depends on it
	}
	if d.start.deliver && d.inboxBringsOnlyNew() {
		for _, t := range d.execution.tasks {
			t.foreign = true
		}
	}
	return d.repeatEffects(ctx) // whoever commits the next round hides from others that the effects of this one are missing
}

// repeatEffects repeats the effects that may be missing.
func (d *driver) repeatEffects(ctx context.Context) error {
	last := d.unconfirmed
	if d.unconfirmed = nil; last == nil {
		return nil
	}
	return d.emit(ctx, *last)
}

// overdue says that the execution's time is over.
func (d *driver) overdue() bool {
	deadline := d.execution.deadline
	return deadline != 0 && d.rt.config.Now().UnixMicro() >= deadline
}

// proceed learns what is there, or waits for it.
func (d *driver) proceed(ctx context.Context, fired, excess []*task, next time.Time) error {
	if len(fired)+len(excess) == 0 {
		return d.waitForResults(ctx, next)
	}
	if len(excess) > 0 {
		sent := event{Kind: activitiesSent}
		for _, t := range excess {
			sent.Tasks = append(sent.Tasks, t.number)
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

// learn takes an event in, now.
func (d *driver) learn(e event) error {
	e = e.clean()
	e.At = d.execution.tick()
	if len(d.learned) == 0 {
		d.commitBy = d.rt.config.Now().Add(d.rt.config.Linger)
	}
	d.learned = append(d.learned, e)
	d.commitNow = d.commitNow || e.Kind == activitiesSent
	err := d.execution.apply(e)
	d.decisionsAfter = append(d.decisionsAfter, len(d.execution.decided))
	return err
}

// mustCommit says whether what was learned can wait for company.
func (d *driver) mustCommit() bool {
	if len(d.execution.decided) > 0 || len(d.unacknowledged) > 0 || d.commitNow {
		return true
	}
	return len(d.learned) > 0 &&
		(len(d.learned) >= d.rt.config.LingerResults || !d.rt.config.Now().Before(d.commitBy))
}

// waitForResults waits for results until next, or until what was learned has lingered long enough, and takes in all there are.
func (d *driver) waitForResults(ctx context.Context, next time.Time) error {
	wake := next
	if len(d.learned) > 0 && (wake.IsZero() || d.commitBy.Before(wake)) {
		wake = d.commitBy
	}
	var timer <-chan time.Time
	if !wake.IsZero() {
		t := time.NewTimer(wake.Sub(d.rt.config.Now()))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return nil
	case <-timer:
		return nil
	case <-d.inboxReady:
		return nil
	case r := <-d.executor.results:
		if err := d.learnResult(r); err != nil {
			return err
		}
	}
	for len(d.learned) < d.rt.config.LingerResults {
		select {
		case r := <-d.executor.results:
			if err := d.learnResult(r); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// learnResult learns how an attempt ended, or how far it is.
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
		return nil // another process has noted the failure of this attempt
	}
	failure := failureOf(r.err)
	t.options.errors.record(failure, r.err)
	return d.learnFailure(t, failure, r.progress)
}

// learnFailure learns that an attempt failed, and whether another follows.
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
