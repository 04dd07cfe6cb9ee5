package poller

import (
	"errors"
	"time"
)

// Condition is how a poller is, in one word.
type Condition string

// The conditions, by what a person would want to know first.
const (
	// Damaged: its state cannot be read.
	Damaged Condition = "damaged"
	// Retired: it does not run.
	Retired Condition = "retired"
	// Stopped: too many rows would go to quarantine, so it stands at a row until its handler takes it.
	Stopped Condition = "stopped"
	// Failing: its latest tick ended with an error, or could not begin.
	Failing Condition = "failing"
	// Running: a process has the lease.
	Running Condition = "running"
	// Complete: its backfill has come to its end.
	Complete Condition = "complete"
	// New: it is defined, and has never run.
	New Condition = "new"
	// Idle: it has run, and nothing is wrong.
	Idle Condition = "idle"
)

// Condition is how the poller is. err is that with which its state was read.
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

// WhatIsWrong is the error that the poller stands at or has met last, "" for nothing.
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

// SeenAt is when the state last said that the poller was at work, zero for never: by a lease, a batch, a look that found nothing, or a
// tick that failed. One without rows says so every Options.IdleHeartbeat only.
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
