package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// wake sees to it that a parked orchestration is driven again when it has something to do: a message comes then, and
// should it be lost, the sweeper finds the orchestration.
func (d *driver) wake(ctx context.Context, at time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var entries []parkedEntry
	if d.waitsWithin() {
		entries = append(entries, d.rt.recheckLater(d.start.ID))
	}
	comes := at.IsZero() // what it waits for, as a signal by itself
	if !comes {
		var err error
		if comes, err = d.timerPending(ctx, at); err != nil {
			return err
		}
	}
	if comes {
		return d.rt.addParked(ctx, entries...)
	}
	// Beyond the longest delay it comes early, finds nothing due, and is sent again.
	now := d.rt.config.Now()
	delay := max(time.Second, min(at.Sub(now), queues.MaxDelay))
	if d.timerSignaled && d.committed == 0 { // the row is there, as the message was that this one takes the place of
		if err := d.rt.addParked(ctx, entries...); err != nil {
			return err
		}
		return d.rt.send(ctx, d.timerSignal(at), delay)
	}
	if err := d.rt.send(ctx, d.timerSignal(at), delay); err != nil {
		return err
	}
	// The row comes last: where it is, the message was sent.
	return d.rt.addParked(ctx, append(entries, parkedEntry{id: d.start.ID, due: at, since: at, message: now.Add(delay)})...)
}

// timerSignal is the message that wakes the orchestration at that time.
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

// timerPending says that the message which wakes the orchestration at that time was sent before, and is still to come. A
// driver that has changed nothing asks, so that looking at what is parked does not multiply its messages; but not one that
// such a message woke, which it takes the place of.
func (d *driver) timerPending(ctx context.Context, at time.Time) (bool, error) {
	if d.committed > 0 || d.timerSignaled {
		return false, nil
	}
	row, err := d.rt.config.Tables.Get(ctx, d.rt.config.IndexTable, tables.Key{Partition: indexPartition, Row: indexRow(d.start.ID, at)})
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("park orchestration %s: %w", d.start.ID, err)
	}
	return row.Time(columnMessage).After(d.rt.config.Now().Add(clockSkew)), nil
}

// clockSkew is how far the clocks of processes may differ, and that of the queue: a message that comes so much too early
// is the one that was sent.
const clockSkew = time.Minute

// dueAt is a call that is due then; nil when it is the execution's deadline.
func (d *driver) dueAt(at time.Time) *task {
	for _, t := range d.execution.tasks {
		if t.open() && t.due == at.UnixMicro() {
			return t
		}
	}
	return nil
}

// waitsWithin says that activities are waited for that other processes run. A sub-orchestration tells of its end by itself.
func (d *driver) waitsWithin() bool {
	for _, t := range d.execution.tasks {
		if t.open() && !t.foreign && t.sent {
			return true
		}
	}
	return false
}

// indexForSweeper has the sweeper look after what this driver has committed and cannot go on with. Its message comes again, as a
// rule; but another process that had it, too, may have acknowledged it before.
func (d *driver) indexForSweeper(ctx context.Context) {
	if d.rt.config.Queues == nil || d.ended() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	now := d.rt.config.Now()
	if err := d.rt.addParked(ctx, parkedEntry{id: d.start.ID, due: now, since: now}); err != nil {
		d.rt.config.Log.Warn("an orchestration cannot be gone on with until its message comes again", "orchestration", d.start.ID, "reason", err.Error())
	}
}
