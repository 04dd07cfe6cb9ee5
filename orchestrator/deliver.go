package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// delivery is a signal on its way into an orchestration.
type delivery struct {
	signal Signal
	// applied is closed when what it brings is in a committed round, or turns out to bring nothing.
	applied chan struct{}
	early   bool // it has to come again later
	gone    bool // the blob that held what it brings is gone
	lost    bool // and it was to bring something
}

// enqueue puts a delivery into the driver's inbox; r.mu is held, so that the driver cannot leave meanwhile without it.
func (d *driver) enqueue(v *delivery) {
	if v == nil {
		return
	}
	d.inbox = append(d.inbox, v)
	select {
	case d.inboxReady <- struct{}{}:
	default: // it knows already
	}
}

// Deliver applies a signal, and drives its orchestration as Run does. nil means that the signal may be acknowledged: what
// it brings is in a committed round, the process that applied it has come to rest, and those who have to know do. So
// whatever message is the last that secures an orchestration, it stays until nothing depends on it. ErrNotFound says
// that there is no such orchestration, or not yet: deliver the signal again later.
func (r *Runtime) Deliver(ctx context.Context, s Signal) (Outcome, error) {
	s, gone, err := r.unpack(ctx, s)
	if err != nil {
		return Outcome{}, err
	}
	out, err := r.deliver(ctx, s, gone)
	if by := s.Payload.Caller; by != nil && errors.Is(err, ErrNotFound) {
		if _, gone := r.Status(ctx, by.ID); errors.Is(gone, ErrNotFound) {
			r.count(func(c *Counts) { c.Stale++ })
			return out, nil // both were purged
		}
		// It is stopped before it begins, so that a process which is about to begin it finds that it has ended.
		call := by.Call
		call.Attempt = 1
		b := plannedExecution{number: 1, event: event{Base: 1, First: 1, Payload: json.RawMessage("null")},
			start: Start{ID: s.InstanceID, Orchestrator: by.Orchestrator, CorrelationID: by.CorrelationID, Parent: by.ID, call: &call}}
		if err = r.commitHeld(ctx, b, nil, ""); err == nil || errors.Is(err, errLostRace) {
			out, err = r.deliver(ctx, s, gone)
		}
	}
	switch {
	case err == nil:
		r.dropClaim(ctx, s)
		if s.DueAtUtc != nil {
			r.markObsolete(s.InstanceID, *s.DueAtUtc)
		}
	case errors.Is(err, ErrNotFound) && s.Type != ExternalSignal:
		r.count(func(c *Counts) { c.Stale++ })
		r.dropClaim(ctx, s)
		return out, nil // it was purged: nothing is left to wake
	}
	r.noteDamage(ctx, err)
	return out, err
}

func (r *Runtime) deliver(ctx context.Context, s Signal, gone bool) (Outcome, error) {
	for {
		v := &delivery{signal: s, gone: gone, applied: make(chan struct{})}
		d, joined := r.join(ctx, Start{ID: s.InstanceID, deliver: true}, nil, v)
		if joined {
			select {
			case <-d.finished:
			case <-ctx.Done():
				return Outcome{}, fmt.Errorf("signal to orchestration %s: %w", s.InstanceID, ctx.Err())
			}
		}
		<-d.finished
		switch {
		case v.early:
			return d.outcome, fmt.Errorf("signal to orchestration %s: %w", s.InstanceID, ErrEarly)
		case v.lost:
			return d.outcome, fmt.Errorf("the payload of signal %s to orchestration %s is gone: raise the event again: %w", s.SignalID, s.InstanceID, ErrNotFound)
		}
		strange := joined && errors.Is(d.err, ErrConflict) // it was made for another run than the signal's
		if v.isApplied() || (d.err != nil && !strange) {
			return r.reportOutcome(ctx, d)
		}
		// The driver came to rest without having read it.
		if err := ctx.Err(); err != nil {
			return d.outcome, fmt.Errorf("signal to orchestration %s: %w", s.InstanceID, err)
		}
	}
}

func (v *delivery) isApplied() bool {
	select {
	case <-v.applied:
		return true
	default:
		return false
	}
}

// readInbox learns what the signals in the inbox bring. Those that only wake have done so.
func (d *driver) readInbox() error {
	d.rt.mu.Lock()
	inbox := d.inbox
	d.inbox = nil
	d.rt.mu.Unlock()
	for i, v := range inbox {
		if d.execution.continues {
			d.requeue(inbox[i:]) // for the execution that follows
			return nil
		}
		d.timerSignaled = d.timerSignaled || v.signal.DueAtUtc != nil
		class := d.classify(v.signal)
		if v.lost = class == signalNew && v.gone; v.lost {
			continue
		}
		switch class {
		case signalNew:
			d.unacknowledged = append(d.unacknowledged, v)
			if err := d.learnSignal(v.signal); err != nil {
				return err
			}
		case signalEarly:
			v.early = true
		case signalStale:
			d.rt.count(func(c *Counts) { c.Stale++ })
			d.staleTimer = d.staleTimer || v.signal.DueAtUtc != nil
			close(v.applied)
		case signalKnown:
			d.rt.count(func(c *Counts) { c.Duplicates++ })
			d.wakeAll(v)
		case signalWakes:
			d.wakeAll(v)
		case signalOfChild:
			d.executor.recheckChild(v.signal.Payload.Child)
			close(v.applied)
		}
	}
	return nil
}

// wakeAll looks at everything again, for a signal that may be the last that knows of it.
func (d *driver) wakeAll(v *delivery) {
	d.executor.recheckAll()
	d.checkTasks = d.checkTasks || v.signal.Type == TaskCompleted || v.signal.Payload.Lost
	if v.signal.Payload.Lost {
		d.executor.resend()
	}
	close(v.applied)
}

// learnSignal learns what a signal brings.
func (d *driver) learnSignal(s Signal) error {
	if len(s.Payload.Results) > 0 {
		return d.takeResults(s.Payload.Results)
	}
	e, _ := s.event()
	d.lateSignal = d.lateSignal || d.execution.ended
	if e.Kind == executionResumed {
		d.executor.recheckHeld()
	}
	return d.learn(e)
}

// hasSignals says that there are signals which have not been read.
func (d *driver) hasSignals() bool {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	return len(d.inbox) > 0
}

// requeue puts deliveries back into the inbox, before those that have come since.
func (d *driver) requeue(deliveries []*delivery) {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	d.inbox = append(slices.Clone(deliveries), d.inbox...)
}

// acknowledge marks the signals as applied whose events a committed round holds.
func (d *driver) acknowledge() {
	for _, v := range d.unacknowledged {
		close(v.applied)
	}
	d.unacknowledged = nil
}
