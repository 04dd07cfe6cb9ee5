package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// lastDecision returns the decision that ended the execution, if it is committed.
func (d *driver) lastDecision() *event {
	return storedExecution{rounds: d.rounds}.end()
}

func (d *driver) ended() bool {
	end := d.lastDecision()
	return end != nil && end.Kind != executionContinued
}

// continuation returns the committed decision to continue as new, until that is carried out.
func (d *driver) continuation() *event {
	if end := d.lastDecision(); end != nil && end.Kind == executionContinued {
		return end
	}
	return nil
}

// open starts the orchestration, or loads it.
func (d *driver) open(ctx context.Context) error {
	if !d.start.Resume && !d.start.deliver {
		err := d.begin(ctx, 1, d.externalStart(1))
		if !errors.Is(err, errLostRace) {
			return err
		}
	}
	if d.restore(ctx) {
		return nil
	}
	all, status, err := d.rt.journal.loadWith(ctx, d.start.ID)
	if err != nil {
		return err
	}
	d.noteStatus(status)
	if len(all) == 0 && d.start.deliver {
		return fmt.Errorf("orchestration %s: %w", d.start.ID, ErrNotFound)
	}
	if len(all) == 0 {
		if err := d.rt.purgeRest(ctx, d.start.ID); err != nil { // a purge of an earlier orchestration of this id may be unfinished
			return err
		}
		return d.begin(ctx, 1, d.externalStart(1))
	}
	return d.resume(ctx, all)
}

// externalStart returns the start event of an execution that is started from outside.
func (d *driver) externalStart(number int) event {
	return event{Start: &startDetails{Base: number, First: number}, Payload: d.start.Input}
}

// continueAsNew starts the next execution after a decision to continue as new.
func (d *driver) continueAsNew(ctx context.Context, end event) error {
	number := d.execution.number + 1
	first, blobs := d.execution.first, d.blobs
	var previous []string
	if !d.marker.kept {
		g := storedExecution{number: d.execution.number}
		for i := range d.rounds {
			g.numbers = append(g.numbers, i+1)
		}
		previous = g.rows()
	}
	if err := d.begin(ctx, number, event{Start: &startDetails{Base: number, First: first}, Payload: end.Payload, Inherited: end.Inherited.with(d.execution.received, d.execution.last)}); err != nil {
		return err
	}
	d.obsoleteRows, d.previousRows = append(d.obsoleteRows, d.previousRows...), previous
	if blobs && previous != nil {
		d.obsoleteBlobs = append(d.obsoleteBlobs, number-1)
	}
	return nil
}

// begin starts an execution and commits its first round. It has no effect outside before the commit.
func (d *driver) begin(ctx context.Context, number int, started event) error {
	wanted := Start{Orchestrator: d.orchestrator.Name()}
	details := started.start()
	if details.First == number {
		wanted.Version = d.start.Version
	}
	if current := d.rt.versionFor(wanted); current != nil {
		d.orchestrator = current
	}
	d.resetExecution(number, details.Base)
	details.Series = d.start.Reuse == ReuseEnded && details.First == number && number > 1 && !details.Held
	d.previousMarker, d.marker = d.marker, executionMarker{number, details.First == number && !details.Series}
	if started.Attempt == 0 {
		started.Attempt = 1
	}
	if started.Attempt == 1 {
		d.earlier = nil
	}
	if number == details.Base {
		d.prior = priorResults{}
	}
	d.execution.takeOverPrior(d.prior, d.earlier)
	options := d.orchestrator.configured()
	started.Kind, started.Name = executionStarted, d.orchestrator.Name()
	details.CorrelationID, details.Tenant = d.start.CorrelationID, d.start.TenantID
	d.start.Trace = d.rt.TraceOf(d.start)
	details.Trace = d.start.Trace
	details.Parent, details.Carry, details.Timeout = d.start.Parent, d.start.Carry, d.start.Timeout.Microseconds()
	details.Version, details.Drop, details.Reference = options.version, options.drop, d.start.Reference
	details.Rules, details.Publishes, details.Signals = rules, d.rt.config.Publish != nil, d.rt.config.Queues != nil
	details.WillRetry, details.Call, details.Errors = d.start.WillRetry, d.start.call, d.start.errors
	started.Payload = compact(started.Payload)
	if details.Before = d.version; number > 1 {
		details.Created = d.createdAt.UnixMicro()
	}
	started.Start = &details
	if err := d.learn(started); err != nil {
		return err
	}
	if number == 1 {
		d.createdAt = d.execution.clock
	}
	if err := d.reusePrior(); err != nil {
		return err
	}
	return d.commitRounds(ctx)
}

// resetExecution replaces the execution in memory by an empty one.
func (d *driver) resetExecution(number, base int) {
	last := d.latestEventAt
	if d.execution != nil {
		last = max(last, d.execution.last)
		d.execution.close()
	}
	d.execution = &execution{id: d.start.ID, number: number, base: base, correlationID: d.start.CorrelationID, last: last,
		orchestrator: d.orchestrator, log: d.rt.config.Log, now: d.rt.config.Now, publishes: d.rt.config.Publish != nil, signals: d.rt.config.Queues != nil}
	d.execution.watchdog = d.watchdog
	d.executor.forget(d.known)
	d.executor.attach(d.execution)
	d.rounds, d.lookedUp, d.matched, d.known, d.commitNow = nil, 0, nil, 0, false
	d.blobs = false
	d.dropUncommitted()
}

// resume continues from the stored rounds. It replays an execution that runs, and makes the next attempt after a
// failure; but a signal alone does not retry a failed execution.
func (d *driver) resume(ctx context.Context, all []storedExecution) error {
	if d.start.call != nil && !d.start.deliver {
		return d.resumeForCaller(ctx, all)
	}
	if d.startsNextRun(all) {
		return d.beginNextRun(ctx, all)
	}
	err := d.identify(all)
	if (err == nil || errors.Is(err, ErrOtherWork)) && d.takesPlace(all) {
		return d.beginAfter(ctx, all)
	}
	if err != nil {
		return err
	}
	latest, started := latestOf(all)
	if end := latest.end(); end != nil && end.Kind == executionFailed && (!d.start.deliver || d.retryOverdue(*end)) {
		return d.startNextAttempt(ctx, all, nextAttempt(latest, started))
	}
	return d.loadLatest(all)
}

// readEarlier collects the data that the driver needs of the executions before the latest.
func (d *driver) readEarlier(all []storedExecution) {
	latest := all[len(all)-1]
	d.version, d.earlier, d.marker = roundCount(all), nil, latest.marker()
	d.obsoleteRows, d.previousRows = obsoleteRows(all)
	d.obsoleteBlobs = executionsWithBlobs(all)
	d.latestEventAt = max(d.latestEventAt, latest.lastEventAt())
	if end := latest.end(); end != nil {
		d.reportedStatus = endStatus(*end)
	}
	for _, g := range all {
		if g.number >= latest.firstAttempt() && g.number < latest.number {
			d.earlier = append(d.earlier, summarize(d.start.ID, g))
		}
	}
}

// loadLatest brings the driver to the end of the stored rounds.
func (d *driver) loadLatest(all []storedExecution) error {
	d.readEarlier(all)
	latest := all[len(all)-1]
	started, _ := latest.start()
	pinned := d.pinVersion(started)
	d.resetExecution(latest.number, max(started.start().Base, 1))
	d.rounds, d.blobs = latest.rounds, latest.blobs
	if d.unconfirmed = nil; d.status.Int(columnEffects) != int64(d.version) {
		d.unconfirmed = &latest.rounds[len(latest.rounds)-1]
	}
	if latest.end() != nil || d.codeless {
		d.execution.loadWithoutCode(latest)
		if d.execution.end.Retrying {
			d.requiredETag = d.statusETag // with this ETag, the next attempt has not begun
		}
		d.known = len(d.summary().Calls)
		d.execution.customStatus = d.storedCustomStatus
		d.reportedStatus, _ = d.execution.currentStatus()
		d.traceLoaded()
		return nil
	}
	if pinned != nil {
		return pinned
	}
	if n := len(all); n > 1 && len(d.earlier) > 0 {
		d.prior = started.priorResults(d.start.ID, all[:n-1])
	}
	d.execution.takeOverPrior(d.prior, d.earlier)
	for i := 0; i < len(latest.rounds); {
		turn, n := mergeTurn(latest.rounds[i:])
		if err := d.execution.replay(i+1, turn); err != nil {
			return err
		}
		d.removeReused(turn)
		i += n
	}
	d.leftoverDecisions = len(d.execution.decided)
	d.known = d.execution.callsAfter(0)
	d.reportedStatus, _ = d.execution.currentStatus()
	d.closeTasks(roundPart{decided: 0, whole: d.leftoverDecisions == 0})
	d.traceLoaded()
	return nil
}

// noteStatus keeps the status row that was loaded with the rounds.
func (d *driver) noteStatus(status tables.Entity) {
	d.status, d.writtenAt = status, status.Time(columnExecutedOn)
	d.statusETag, d.storedCustomStatus = status.ETag, status.String("CustomStatus")
	d.lastSignal, d.responsible = status.String("LastSignalId"), status.String(columnResponsible)
}

// rules is the version of the rules by which this code writes rounds. An execution keeps the rules under which it
// began.
const rules = rules3

// rules3 is the first version of these rules: A call with WithID is rejected when its id is taken (checkChild). An
// attempt that keeps results learns the events of previous attempts at their place among these. Undo is a barrier. An
// abandoned sub-orchestration does not keep its caller. A canceled orchestration that cannot continue ends. An event
// records the clock if that was ahead before (event.clock). A cancellation resumes a suspended execution.
const rules3 = 3

// createdOf returns when the orchestration was created, given any of its starts.
func createdOf(started event) time.Time {
	if created := started.start().Created; created != 0 {
		return fromMicros(created)
	}
	return fromMicros(started.At)
}

// pinVersion selects the version of the orchestrator with which the execution began.
func (d *driver) pinVersion(started event) error {
	o, err := d.rt.pinned(started)
	if err != nil {
		return fmt.Errorf("orchestration %s: %w", d.start.ID, err)
	}
	d.orchestrator = o
	return nil
}

// identify checks that the id belongs to the requested orchestration. A driver that a signal started uses the Start of
// the orchestration that it finds.
func (d *driver) identify(all []storedExecution) error {
	first, ok := all[0].start()
	started, okToo := all[len(all)-1].start()
	if !ok || !okToo {
		return fmt.Errorf("an execution of orchestration %s does not begin with a start: %w", d.start.ID, ErrCorrupt)
	}
	d.createdAt = createdOf(first)
	if d.start.deliver {
		d.start = startFrom(d.start.ID, started)
		d.start.deliver = true
		d.executor.start = d.start
		return nil
	}
	details := started.start()
	d.start.call, d.start.Trace = details.Call, details.Trace
	if !mayRepeat(d.start.TenantID, details.Tenant) {
		return otherTenant(d.start.ID)
	}
	d.start.TenantID = details.Tenant // also "", so that no tenant takes over a run of the platform
	d.executor.start.TenantID = details.Tenant
	if started.Name != d.start.Orchestrator || details.CorrelationID != d.start.CorrelationID {
		return fmt.Errorf("orchestration %s was started by %s for correlation id %s: %w",
			d.start.ID, started.Name, details.CorrelationID, ErrConflict)
	}
	return d.start.checkSame(details.Carry)
}
