package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// wake sees to it that a parked orchestration is driven again when it has something to do: a message comes then, and
// should it be lost, the sweeper finds the orchestration.
func (d *driver) wake(ctx context.Context, at time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var parkings []parking
	if d.waitsWithin() {
		parkings = append(parkings, d.rt.lookAfter(d.start.ID))
	}
	if at.IsZero() { // what it waits for comes as a signal by itself
		if len(parkings) == 0 {
			return nil
		}
		return d.rt.remember(ctx, parkings...)
	}
	s := Signal{InstanceID: d.start.ID, Type: TimerDue, DueAtUtc: &at, ExpectedVersion: int64(d.version)}
	if t := d.dueAt(at); t != nil {
		s.WaitingToken = d.execution.token(t)
		if t.attempts > 0 {
			s.Type = RetryDue
		}
	}
	s.SignalID = fmt.Sprintf("%s:%s:%d", s.Type, s.InstanceID, at.UnixMicro())
	if err := d.rt.remember(ctx, append(parkings, parking{id: d.start.ID, due: at, since: at})...); err != nil {
		return err
	}
	// Beyond the longest delay it comes early, finds nothing due, and is sent again.
	return d.rt.send(ctx, s, max(time.Second, min(at.Sub(d.rt.config.Now()), queues.MaxDelay)))
}

// dueAt is a call that is due then; nil when it is the execution's deadline.
func (d *driver) dueAt(at time.Time) *task {
	for _, t := range d.execution.tasks {
		if t.open() && t.due == at.UnixMicro() {
			return t
		}
	}
	return nil
}

// waitsWithin says that what is waited for comes from other processes of this program.
func (d *driver) waitsWithin() bool {
	for _, t := range d.execution.tasks {
		if t.open() && !t.foreign && (t.kind == childTask || t.sent) {
			return true
		}
	}
	return false
}
