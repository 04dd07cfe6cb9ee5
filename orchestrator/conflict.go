package orchestrator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
)

const (
	// conflictTries bounds how often a driver applies the rounds of other processes before it leaves the orchestration
	// to them.
	conflictTries = 6
	// conflictPause bounds the pause before the first of these. The bound doubles each time, and the pause is a random
	// part of it.
	conflictPause = 20 * time.Millisecond
)

// catchUp applies the rounds that other processes committed first.
func (d *driver) catchUp(ctx context.Context) error {
	d.conflicts++
	d.rt.count(func(c *Counts) { c.Conflicts++ })
	_ = pause(ctx, rand.N(conflictPause<<(d.conflicts-1)))
	if err := d.takeIn(ctx); err != nil || d.pastOutcome != nil {
		return err
	}
	return d.repeatEffects(ctx) // the process that committed the last round may have died since
}

// takeIn applies the rounds that other processes have committed. Attempts that run here continue, and their results
// are learned again. Calls that other processes made since then are left to them, except undos of work that runs here.
func (d *driver) takeIn(ctx context.Context) error {
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	all, status, err := d.rt.journal.loadWith(ctx, d.start.ID)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("orchestration %s was purged while it ran: %w", d.start.ID, ErrNotFound)
	}
	if d.superseded(all) {
		return nil
	}
	d.noteStatus(status)
	d.adoptCall(all)
	number, learned, known := d.execution.number, d.learned, d.known
	foreign := d.foreignCalls()
	d.requeue(d.unacknowledged)
	d.unacknowledged = nil
	if err := d.loadLatest(all); err != nil {
		return err
	}
	if d.execution.ended {
		return nil
	}
	if d.execution.number != number {
		known, learned, foreign = 0, nil, nil
	}
	d.leaveToOthers(foreign, known)
	if err := d.reusePrior(); err != nil { // so that calls with a known result are not made
		return err
	}
	if err := d.relearn(learned, known); err != nil {
		return err
	}
	if err := d.learnAnswers(ctx); err != nil {
		return err
	}
	return d.reusePrior() // the same for calls that the learned events led to
}

// adoptCall adopts the attempt at the caller's call that the orchestration runs for by now. Work that this driver
// begins from here on is for that attempt. Otherwise the caller would take it for work of an earlier attempt, which
// another driver continues.
func (d *driver) adoptCall(all []storedExecution) {
	_, started := latestOf(all)
	latest := started.start()
	if d.start.call == nil || latest.Call == nil || !latest.Call.same(*d.start.call) {
		return
	}
	d.start.call, d.start.WillRetry, d.start.errors = latest.Call, latest.WillRetry, latest.Errors
	d.executor.start = d.start
}

// foreignCalls returns the numbers of the calls that belong to other drivers.
func (d *driver) foreignCalls() (numbers []int) {
	for _, t := range d.execution.tasks {
		if t.foreign {
			numbers = append(numbers, t.number)
		}
	}
	return numbers
}

// leaveToOthers marks the calls that other drivers run: the calls with these numbers, and all calls after the first
// known ones.
func (d *driver) leaveToOthers(foreign []int, known int) {
	x := d.execution
	for _, number := range foreign {
		if t := x.task(number); t != nil {
			t.foreign = true
		}
	}
	for _, t := range x.tasks[min(known, len(x.tasks)):] {
		t.foreign, t.rival = true, true
		if undone := x.task(t.undoes); undone != nil && undone.number <= known && !undone.foreign && undone.elsewhere && !undone.returned {
			t.foreign, t.rival = false, false
		}
	}
}

// superseded reports whether another run has begun under the id since. Then this driver's run is over for good.
func (d *driver) superseded(all []storedExecution) bool {
	first := d.execution.first
	if _, latest := latestOf(all); max(latest.start().First, 1) == first {
		return false
	}
	for _, g := range slices.Backward(all) {
		if started, ok := g.start(); ok && max(started.start().First, 1) == first && !g.old {
			out := summarize(d.start.ID, g)
			out.Rounds = d.committed
			d.pastOutcome = &out
			d.dropUncommitted()
			return true
		}
	}
	d.pastOutcome = &Outcome{ID: d.start.ID, CorrelationID: d.start.CorrelationID, Execution: d.execution.number, Status: Terminated,
		Failure: terminatedFailure("another orchestration was started under its id"), EndedAt: d.rt.config.Now()}
	d.dropUncommitted()
	return true
}

// checkRival returns ErrElsewhere if another process is working on calls of the orchestration. Then the message of
// this driver has to stay in its queue until that process has come to rest.
func (d *driver) checkRival() error {
	for _, t := range d.execution.tasks {
		if t.open() && t.rival && !t.kind.outside() { // results from outside come as signals
			return fmt.Errorf("orchestration %s: %w", d.start.ID, ErrElsewhere)
		}
	}
	return nil
}

// relearn learns the results of attempts again, as far as they belong to the first, committed calls. All other events
// recur by themselves: signals are in the inbox, timers are due, and local activities run again.
func (d *driver) relearn(events []event, committed int) error {
	for _, e := range events {
		switch e.Kind {
		case activityCompleted, activityFailed, attemptFailed, childCompleted, childFailed, activityProgressed:
		default:
			continue
		}
		t := d.execution.task(e.Task)
		if t == nil || t.done || e.Task > committed || e.reused() || e.Failure != nil && e.Attempt != t.attempts+1 {
			continue
		}
		if err := d.learn(e); err != nil {
			return err
		}
	}
	return nil
}
