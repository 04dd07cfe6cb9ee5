package orchestrator

import (
	"context"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/internal/outage"
)

// startsNextRun reports whether runs follow each other under the id, and the latest run is another one than the
// requested.
func (d *driver) startsNextRun(all []storedExecution) bool {
	_, latest := latestOf(all)
	return d.start.Reuse == ReuseEnded && !d.start.deliver && latest.Name == d.start.Orchestrator && latest.start().CorrelationID != d.start.CorrelationID
}

// beginNextRun starts the requested run under the id, unless it has ended for good before. While the latest run is
// active, the error is ErrConflict.
func (d *driver) beginNextRun(ctx context.Context, all []storedExecution) error {
	latest, started := latestOf(all)
	if out, ok := d.findPastRun(all); ok {
		if err := d.start.checkSame(out.Carry); err != nil {
			return err
		}
		d.pastOutcome = &out
		return nil
	}
	if latest.active() {
		return fmt.Errorf("orchestration %s runs for correlation id %s: %w", d.start.ID, started.start().CorrelationID, ErrConflict)
	}
	return d.beginAfter(ctx, all)
}

// takesPlace reports whether the Start replaces the latest run, which has failed for good.
func (d *driver) takesPlace(all []storedExecution) bool {
	latest, started := latestOf(all)
	end := latest.end()
	return d.start.Instead != nil && !d.start.deliver && end != nil && end.Kind == executionFailed && !end.Retrying && d.start.Instead(started.start().Carry)
}

// beginAfter starts the requested run under the id after the latest one, which has ended.
func (d *driver) beginAfter(ctx context.Context, all []storedExecution) error {
	latest, _ := latestOf(all)
	d.readEarlier(all)
	before := summarize(d.start.ID, latest)
	before.Earlier = d.earlier
	if err := d.settlePreviousRun(ctx, before, latest); err != nil {
		return err
	}
	first, _ := all[0].start()
	d.createdAt = createdOf(first)
	next := freshExecution(d.start, latest, "")
	d.lastSignal = "" // the signal belongs to the previous run
	return d.begin(ctx, next.number, next.event)
}

// findPastRun searches for the requested run among those before the latest. A run that failed does not count, because
// it has to run again.
func (d *driver) findPastRun(all []storedExecution) (Outcome, bool) {
	for _, g := range slices.Backward(all) {
		started, ok := g.start()
		if !ok || started.start().CorrelationID != d.start.CorrelationID || started.Name != d.start.Orchestrator {
			continue
		}
		end := g.end()
		if g.old || end == nil || end.Kind == executionFailed {
			return Outcome{}, false
		}
		return summarize(d.start.ID, g), true
	}
	return Outcome{}, false
}

// settlePreviousRun ensures that all effects of the previous run were carried out and that its end was reported. A
// process may have died in between, and once the next run has begun, nothing would repeat them.
func (d *driver) settlePreviousRun(ctx context.Context, out Outcome, latest storedExecution) error {
	if err := d.rt.repeatLastEffects(ctx, d.start.ID, []storedExecution{latest}, (*driver).emit); err != nil {
		return err
	}
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	if d.rt.config.Ended == nil || out.Parent != "" {
		return nil
	}
	if err := d.rt.config.Ended(ctx, out); err != nil {
		return fmt.Errorf("settle the run of correlation id %s before the next of orchestration %s: %w", out.CorrelationID, out.ID, err)
	}
	return nil
}
