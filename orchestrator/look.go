package orchestrator

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/tables"
)

// These are the first and the longest pause between two checks of a driver with running activities. Each check doubles
// the pause.
const (
	lookFirst = 10 * time.Second
	lookMost  = time.Minute
)

// lookout schedules the checks of a running driver for rounds that other processes have committed. A cancellation may
// be delivered to any process, and a long activity has to learn of it before it ends.
type lookout struct {
	next  time.Time // zero while no activity runs
	pause time.Duration
}

// at returns when the next check is due; zero while no activity runs here, or other processes cannot contribute.
func (l *lookout) at(running bool, now time.Time) time.Time {
	if !running {
		*l = lookout{}
		return time.Time{}
	}
	if l.next.IsZero() {
		l.pause = lookFirst
		l.next = now.Add(l.pause)
	}
	return l.next
}

// lookForOthers applies the rounds that other processes have committed, when a check is due. A failed check is
// repeated.
func (d *driver) lookForOthers(ctx context.Context) error {
	now := d.rt.config.Now()
	due := d.lookAt(now)
	if due.IsZero() || now.Before(due) {
		return nil
	}
	d.lookout.pause = min(2*d.lookout.pause, lookMost)
	d.lookout.next = now.Add(d.lookout.pause)
	look, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	row, err := d.rt.config.Tables.Get(look, d.rt.config.Table, tables.Key{Partition: tables.EscapeKey(d.start.ID), Row: statusRow})
	if err != nil {
		d.log().WarnContext(ctx, "cannot read whether other processes have changed the orchestration", "error", err.Error())
		return nil
	}
	if row.Int("StateVersion") <= int64(d.version) {
		return nil
	}
	return d.takeIn(ctx)
}

// lookAt returns when the next check is due; zero for never.
func (d *driver) lookAt(now time.Time) time.Time {
	return d.lookout.at(len(d.executor.inFlight) > 0 && d.rt.config.Queues != nil, now)
}
