package poller

import (
	"errors"
	"time"
)

// Condition is the condition of a poller, as one word.
type Condition string

// The conditions, the most urgent first.
const (
	// Damaged: its state is unreadable.
	Damaged Condition = "damaged"
	// Retired: it does not run.
	Retired Condition = "retired"
	// Stopped: too many rows would go to quarantine, so it waits at a row until its handler accepts it.
	Stopped Condition = "stopped"
	// Failing: its latest tick ended with an error, or could not start.
	Failing Condition = "failing"
	// Running: a process has the lease.
	Running Condition = "running"
	// Complete: its backfill has reached its end.
	Complete Condition = "complete"
	// New: it is defined, and has never run.
	New Condition = "new"
	// Idle: it has run, without an error.
	Idle Condition = "idle"
)

// Condition returns the condition of the poller. err is the error of reading its state.
func (v View) Condition(err error) Condition {
	d := v.Document
	switch {
	case errors.Is(err, ErrNotFound):
		return New
	case err != nil || d == nil:
		return Damaged
	case d.Retired:
		return Retired
	case d.Failure != nil && d.Failure.Breaker:
		return Stopped
	case d.Failure != nil || d.TickFailure != nil:
		return Failing
	case v.Live:
		return Running
	case d.Backfill != nil && d.Backfill.Done:
		return Complete
	default:
		return Idle
	}
}

// WhatIsWrong returns the current or last error of the poller, "" for none.
func (d *Document) WhatIsWrong() string {
	switch {
	case d == nil:
		return ""
	case d.TickFailure != nil:
		return d.TickFailure.Error
	case d.Failure != nil:
		return d.Failure.Error
	default:
		return ""
	}
}

// SeenAt returns when the state last showed activity of the poller, zero for never: a lease, a batch, an idle tick, or
// a failed tick. A poller without rows records idle ticks every Options.IdleHeartbeat only.
func (d *Document) SeenAt() time.Time {
	last := d.PolledAt
	times := []time.Time{d.Lease.Heartbeat}
	if d.Checkpoint != nil {
		times = append(times, d.Checkpoint.UpdatedAt)
	}
	if d.TickFailure != nil {
		times = append(times, d.TickFailure.LastAt)
	}
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
