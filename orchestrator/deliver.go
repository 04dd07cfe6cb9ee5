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
	// applied is closed when a committed round holds the signal's contents, or when the signal needs no round. tell is
	// called then, if it is not nil.
	applied chan struct{}
	tell    func()
	gone    bool // the blob with the payload is gone
	lost    bool // the blob is gone, and the payload was needed
}

// enqueue puts a delivery into the driver's inbox. The caller holds r.mu, so that the driver cannot finish without
// seeing it.
func (d *driver) enqueue(v *delivery) {
	if v == nil {
		return
	}
	d.inbox = append(d.inbox, v)
	d.notify()
	d.handOver()
}

// notify signals the driver that its inbox is not empty.
func (d *driver) notify() {
	select {
	case d.inboxReady <- struct{}{}:
	default: // the driver is notified already
	}
}

// Deliver applies a signal and drives its orchestration, as Run does. A nil error means that the signal may be
// acknowledged: its contents are in a committed round, the driver has come to rest, and the hooks have been called. So
// the last message that keeps an orchestration alive stays in its queue until nothing depends on it. ErrNotFound means
// that the orchestration does not exist. An event that is not older than Config.KeepEarly may be for one that is not
// started yet. Then the error is an *EarlyError, which holds the pause before the next delivery. The outcome of an
// orchestration that waits again has Calls only if one of them ended meanwhile; Get returns them all.
func (r *Runtime) Deliver(ctx context.Context, s Signal) (Outcome, error) {
	return r.deliverAndTell(ctx, s, nil)
}

// deliverAndTell is Deliver. It calls applied at least once when a committed round holds the signal's contents.
func (r *Runtime) deliverAndTell(ctx context.Context, s Signal, applied func()) (Outcome, error) {
	s, gone, err := r.unpack(ctx, s)
	if err != nil {
		return Outcome{}, err
	}
	out, err := r.deliver(ctx, s, gone, applied)
	if by := s.Payload.Caller; by != nil && errors.Is(err, ErrNotFound) {
		if _, gone := r.Status(ctx, by.ID); errors.Is(gone, ErrNotFound) {
			r.count(func(c *Counts) { c.Stale++ })
			return out, nil // both were purged
		}
		// The sub-orchestration is stopped before it begins, so that a process that is about to begin it finds that it
		// has ended.
		call := by.Call
		call.Attempt = 1
		b := plannedExecution{number: 1, event: event{Start: &startDetails{Base: 1, First: 1}, Payload: json.RawMessage("null")},
			start: Start{ID: s.InstanceID, Orchestrator: by.Orchestrator, CorrelationID: by.CorrelationID, TenantID: by.TenantID, Parent: by.ID, call: &call}}
		if err = r.commitHeld(ctx, b, nil, ""); err == nil || errors.Is(err, errLostRace) {
			out, err = r.deliver(ctx, s, gone, applied)
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
		return out, nil // the orchestration was purged: nothing is left to wake
	case errors.Is(err, ErrNotFound) && !errors.Is(err, errPayloadGone):
		if early := r.early(s); early != nil {
			return out, early
		}
	}
	r.noteDamage(ctx, err)
	return out, err
}

func (r *Runtime) deliver(ctx context.Context, s Signal, gone bool, applied func()) (Outcome, error) {
	for {
		v := &delivery{signal: s, gone: gone, applied: make(chan struct{}), tell: applied}
		d, joined := r.join(ctx, Start{ID: s.InstanceID, deliver: true}, nil, v)
		if joined {
			select {
			case <-d.finished:
			case <-ctx.Done():
				return Outcome{}, fmt.Errorf("signal to orchestration %s: %w", s.InstanceID, ctx.Err())
			}
		}
		d.await(ctx)
		if v.lost {
			return d.outcome, fmt.Errorf("signal %s to orchestration %s: %w", s.SignalID, s.InstanceID, errPayloadGone)
		}
		// The driver was made for another run than the signal's, for a message that other processes have, too, or
		// under a node name that has been taken over since.
		strange := joined && (errors.Is(d.err, ErrConflict) || errors.Is(d.err, ErrElsewhere))
		if v.isApplied() || (d.err != nil && !strange) {
			return r.reportOutcome(ctx, d)
		}
		// The driver came to rest without having read the signal.
		if err := ctx.Err(); err != nil {
			return d.outcome, fmt.Errorf("signal to orchestration %s: %w", s.InstanceID, err)
		}
	}
}

// apply marks the signal as applied.
func (v *delivery) apply() {
	close(v.applied)
	if v.tell != nil {
		v.tell()
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

// readInbox learns the contents of the signals in the inbox. A signal that only wakes has done its work by then.
func (d *driver) readInbox() error {
	d.rt.mu.Lock()
	inbox := d.inbox
	d.inbox = nil
	select {
	case <-d.inboxReady: // sent for the signals that are read here
	default:
	}
	d.rt.mu.Unlock()
	for i, v := range inbox {
		if d.execution.continues {
			d.requeue(inbox[i:]) // for the execution that follows
			return nil
		}
		d.timerCame = d.timerCame || v.signal.DueAtUtc != nil
		class := d.classify(v.signal)
		if v.lost = class == signalNew && v.gone; v.lost {
			continue
		}
		if class == signalNew || class == signalWakes || class == signalOfChild || class == signalTakesOver {
			d.lastSignal = v.signal.SignalID
		}
		switch class {
		case signalNew:
			d.unacknowledged = append(d.unacknowledged, v)
			if err := d.learnSignal(v.signal); err != nil {
				return err
			}
		case signalTakesOver:
			d.unacknowledged = append(d.unacknowledged, v)
			if err := d.learnTakeover(v.signal); err != nil {
				return err
			}
		case signalStale:
			d.rt.count(func(c *Counts) { c.Stale++ })
			d.staleTimer = d.staleTimer || v.signal.DueAtUtc != nil
			v.apply()
		case signalKnown:
			d.rt.count(func(c *Counts) { c.Duplicates++ })
			d.wakeAll(v)
		case signalWakes:
			d.wakeAll(v)
		case signalOfChild:
			d.executor.recheckChild(v.signal.Payload.Child)
			v.apply()
		}
	}
	return nil
}

// wakeAll rechecks everything that the orchestration waits for, because the signal may be the last message about it.
func (d *driver) wakeAll(v *delivery) {
	d.executor.recheckAll()
	d.checkTasks = d.checkTasks || v.signal.Type == TaskCompleted || v.signal.Payload.Lost
	if v.signal.Payload.Lost {
		d.executor.resend()
		d.sentAgain = true
	}
	v.apply()
}

func (d *driver) learnSignal(s Signal) error {
	if len(s.Payload.Results) > 0 {
		return d.takeResults(s.Payload.Results)
	}
	e, _ := s.event()
	switch {
	case e.Kind == executionCanceled:
		if all := d.execution.runElsewhere(); len(all) > 0 {
			e.Target = &target{Tasks: all}
		}
	case e.Kind != eventRaised:
	case d.execution.overtakes(e, d.rt.config.Now()):
		e.Signal.Overtakes = true
	default:
		e.Signal.Previous = 0 // no longer needed
	}
	d.lateSignal = d.lateSignal || d.execution.ended
	if e.Kind == executionResumed || e.Kind == executionCanceled && d.execution.suspended {
		d.executor.recheckHeld()
	}
	return d.learn(e)
}

// hasSignals reports whether the inbox holds unread signals.
func (d *driver) hasSignals() bool {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	return len(d.inbox) > 0
}

// requeue returns deliveries to the inbox, before those that arrived since.
func (d *driver) requeue(deliveries []*delivery) {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	if d.inbox = append(slices.Clone(deliveries), d.inbox...); len(d.inbox) > 0 {
		d.notify()
	}
}

// acknowledge marks the signals with events in a committed round as applied.
func (d *driver) acknowledge() {
	for _, v := range d.unacknowledged {
		v.apply()
	}
	d.unacknowledged = nil
}
