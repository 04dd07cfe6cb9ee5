package orchestrator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// conflictTries bounds how often a driver takes in the rounds of others before it leaves the orchestration to them.
	conflictTries = 6
	// conflictPause is the longest pause before the first of these; it doubles from one to the next, and chance says how
	// much of it is waited.
	conflictPause = 20 * time.Millisecond
)

// catchUp takes in the rounds that other processes committed first. What runs here goes on, and its results are learned
// again; what others called since is theirs to see to.
func (d *driver) catchUp(ctx context.Context) error {
	d.conflicts++
	d.rt.count(func(c *Counts) { c.Conflicts++ })
	_ = pause(ctx, rand.N(conflictPause<<(d.conflicts-1)))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
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
	number, learned, known := d.execution.number, d.learned, d.known
	d.requeue(d.unacknowledged)
	d.unacknowledged = nil
	if err := d.loadLatest(all); err != nil {
		return err
	}
	if err := d.repeatEffects(ctx); err != nil {
		return err
	}
	if d.execution.ended {
		return nil
	}
	if d.execution.number != number {
		known, learned = 0, nil
	}
	for _, t := range d.execution.tasks[min(known, len(d.execution.tasks)):] {
		t.foreign, t.rival = true, true
	}
	if err := d.reusePrior(); err != nil { // before anything is called that has a result
		return err
	}
	if err := d.relearn(learned); err != nil {
		return err
	}
	if err := d.learnAnswers(ctx); err != nil {
		return err
	}
	return d.reusePrior() // nor is what that led to called again
}

// superseded says that another run has begun under the id since: this driver's is over, and stays so.
func (d *driver) superseded(all []storedExecution) bool {
	first := d.execution.first
	if _, latest := latestOf(all); max(latest.First, 1) == first {
		return false
	}
	for _, g := range slices.Backward(all) {
		if started, ok := g.start(); ok && max(started.First, 1) == first && !g.old {
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

// checkRival says that a rival goes on with the orchestration. This driver's message has to stay until it is seen that the
// rival came to rest.
func (d *driver) checkRival() error {
	for _, t := range d.execution.tasks {
		if t.open() && t.rival && !t.kind.outside() { // that comes by itself
			return fmt.Errorf("orchestration %s: %w", d.start.ID, ErrElsewhere)
		}
	}
	return nil
}

// relearn learns again what attempts led to. All else is found again: signals are in the inbox, times pass.
func (d *driver) relearn(events []event) error {
	for _, e := range events {
		switch e.Kind {
		case activityCompleted, activityFailed, attemptFailed, childCompleted, childFailed, activityProgressed:
		default:
			continue
		}
		t := d.execution.task(e.Task)
		if t == nil || t.done || e.reused() || e.Failure != nil && e.Attempt != t.attempts+1 {
			continue
		}
		if err := d.learn(e); err != nil {
			return err
		}
	}
	return nil
}
