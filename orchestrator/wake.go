package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// wake ensures that a parked orchestration is driven again when it has work. It sends a message for that time, and
// adds an entry to the index, so that the sweeper finds the orchestration if the message is lost.
func (d *driver) wake(ctx context.Context, at time.Time) error {
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	var entries []parkedEntry
	if d.waitsWithin() {
		entries = append(entries, d.rt.recheckLater(d.start.ID))
	}
	comes := at.IsZero() // it waits only for signals that others send
	if !comes {
		var err error
		if comes, err = d.timerPending(ctx, at); err != nil {
			return err
		}
	}
	if comes {
		return d.rt.addParked(ctx, entries...)
	}
	// A time beyond the longest delay is reached in steps: the message arrives early, finds nothing due, and is sent
	// again.
	now := d.rt.config.Now()
	delay := max(time.Second, min(at.Sub(now), queues.MaxDelay))
	if err := d.rt.sendOnce(ctx, d.timerSignal(at), delay); err != nil {
		return err
	}
	// The index entry is written last, because its existence means that the message was sent.
	return d.rt.addParked(ctx, append(entries, parkedEntry{id: d.start.ID, due: at, since: at, message: now.Add(delay)})...)
}

// timerSignal returns the signal that wakes the orchestration at that time.
func (d *driver) timerSignal(at time.Time) Signal {
	s := Signal{InstanceID: d.start.ID, Type: TimerDue, DueAtUtc: &at, ExpectedVersion: int64(d.version)}
	if t := d.dueAt(at); t != nil {
		s.WaitingToken = d.execution.token(t)
		if t.attempts > 0 {
			s.Type = RetryDue
		}
	}
	s.SignalID = fmt.Sprintf("%s:%s:%d", s.Type, s.InstanceID, at.UnixMicro())
	return s
}

// timerPending reports whether the message for that time was sent before and has not arrived yet. Only a driver
// without changes checks this. So reading a parked orchestration does not multiply its messages. Nor do duplicates of
// a message that arrived early, for a time beyond the longest delay.
func (d *driver) timerPending(ctx context.Context, at time.Time) (bool, error) {
	if d.committed > 0 {
		return false, nil
	}
	row, err := d.rt.config.Tables.Get(ctx, d.rt.config.IndexTable, tables.Key{Partition: indexPartition, Row: indexRow(d.start.ID, at)})
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("park orchestration %s: %w", d.start.ID, err)
	}
	tolerance := clockSkew
	if d.timerCame { // only a message that another driver has sent instead is so much later, even with skewed clocks
		tolerance = replacedBy
	}
	return row.Time(columnMessage).After(d.rt.config.Now().Add(tolerance)), nil
}

// replacedBy is the least time from a timer's message to the next one that replaces it. Steps are days long.
const replacedBy = time.Hour

// clockAhead bounds how much the time of events, which only grows, may be later than a process's clock. Beyond it,
// Context.Now goes back to the clock: the clock of another process was wrong, not only skewed.
const clockAhead = 15 * time.Minute

// clockSkew is how far the clocks of processes and of the queue may differ. A message that arrives early by no more
// than that is the one that was sent.
const clockSkew = time.Minute

// dueAt returns a call that is due at that time; nil when it is the deadline of the execution.
func (d *driver) dueAt(at time.Time) *task {
	for _, t := range d.execution.tasks {
		if t.open() && t.due == at.UnixMicro() {
			return t
		}
	}
	return nil
}

// waitsWithin reports whether the execution, or an undo, waits for activities that other processes run.
// Sub-orchestrations report their ends themselves.
func (d *driver) waitsWithin() bool {
	for _, t := range d.execution.tasks {
		if t.open() && !t.foreign && t.sent {
			return true
		}
	}
	return slices.ContainsFunc(d.execution.elsewhere, func(c elsewhereCall) bool { return c.task.sent })
}

// indexForSweeper makes the sweeper check an orchestration that has rounds of this driver and that it cannot continue.
// Its message is usually redelivered, but another process that got it, too, may have acknowledged it.
func (d *driver) indexForSweeper(ctx context.Context) {
	if d.rt.config.Queues == nil || d.ended() {
		return
	}
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	now := d.rt.config.Now()
	if err := d.rt.addParked(ctx, parkedEntry{id: d.start.ID, due: now, since: now}); err != nil {
		d.log().WarnContext(ctx, "an orchestration cannot be gone on with until its message comes again", "error", err.Error())
	}
}
