package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/queues"
)

// delivery is a signal on its way into an orchestration.
type delivery struct {
	signal Signal
	// applied is closed when what it brings is in a committed round, or turns out to bring nothing.
	applied chan struct{}
}

// hand puts a delivery into the driver's inbox; r.mu is held, so that the driver cannot leave meanwhile without it.
func (d *driver) hand(v *delivery) {
	if v == nil {
		return
	}
	d.inbox = append(d.inbox, v)
	select {
	case d.mail <- struct{}{}:
	default: // it knows already
	}
}

// Deliver applies a signal, and drives its orchestration as Run does. nil means that the signal may be acknowledged: what
// it brings is in a committed round, the process that applied it has come to rest, and those who have to know do. So
// whatever message is the last that secures an orchestration, it stays until nothing depends on it. ErrNotFound says
// that there is no such orchestration, or not yet: deliver the signal again later.
func (r *Runtime) Deliver(ctx context.Context, s Signal) (Outcome, error) {
	if err := s.validate(); err != nil {
		return Outcome{}, err
	}
	for {
		v := &delivery{signal: s, applied: make(chan struct{})}
		d, joined := r.enter(ctx, Start{ID: s.InstanceID, deliver: true}, nil, v)
		if joined {
			select {
			case <-d.finished:
			case <-ctx.Done():
				return Outcome{}, fmt.Errorf("signal to orchestration %s: %w", s.InstanceID, ctx.Err())
			}
		}
		<-d.finished
		if v.isApplied() || d.err != nil {
			return r.conclude(ctx, d, s)
		}
		// The driver came to rest without having read it.
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

// conclude tells those who have to know what a driver that a signal woke has reached.
func (r *Runtime) conclude(ctx context.Context, d *driver, s Signal) (Outcome, error) {
	out := d.outcome
	if d.err != nil {
		return out, d.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if !out.Ended() && !out.Woken {
		// Time ran out. Without progress the signal is delivered again, so that it is counted.
		if out.Rounds == 0 {
			return out, fmt.Errorf("orchestration %s: the time ran out before anything was done: %w", out.ID, context.DeadlineExceeded)
		}
		return out, r.send(ctx, Signal{SignalID: uuid.NewString(), InstanceID: out.ID, Type: InternalContinue}, 0)
	}
	if !out.Ended() {
		return out, nil
	}
	if err := r.stopChildren(ctx, out); err != nil {
		return out, err
	}
	switch {
	case s.SignalID == fromCaller(out.ID):
		return out, nil // who called it has ended, and knows
	case out.Parent != "":
		return out, r.send(ctx, Signal{SignalID: "end:" + out.ID, InstanceID: out.Parent, Type: SubWorkflowCompleted}, 0)
	case r.config.Ended != nil:
		return out, r.config.Ended(ctx, out)
	default:
		return out, nil
	}
}

// stopChildren terminates what a terminated orchestration waited for. It is told again each time that the end is looked
// up; a child that has ended takes no notice.
func (r *Runtime) stopChildren(ctx context.Context, out Outcome) error {
	if out.Status != Terminated {
		return nil
	}
	var errs []error
	for _, c := range out.Calls {
		if c.Kind == OrchestrationCall && c.EndedAt.IsZero() {
			errs = append(errs, r.signal(ctx, c.Child, Payload{Command: "terminate", Reason: "its caller " + out.ID + " was terminated"}, fromCaller(c.Child)))
		}
	}
	return errors.Join(errs...)
}

// fromCaller is the id of the signal by which a terminated orchestration terminates one that it has called.
func fromCaller(child string) string { return "terminate:" + child }

// read learns what the signals in the inbox bring. Those that only wake have done so.
func (d *driver) read() error {
	d.rt.mu.Lock()
	inbox := d.inbox
	d.inbox = nil
	d.rt.mu.Unlock()
	for i, v := range inbox {
		if d.execution.continues {
			d.keep(inbox[i:]) // for the execution that follows
			return nil
		}
		e, ok := v.signal.event()
		if !ok || d.execution.ended || d.execution.knows(e.Signal) {
			d.crew.rouse()
			close(v.applied)
			continue
		}
		d.unsettled = append(d.unsettled, v)
		if err := d.learn(e); err != nil {
			return err
		}
	}
	return nil
}

// keep puts deliveries back into the inbox, before those that have come since.
func (d *driver) keep(deliveries []*delivery) {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	d.inbox = append(slices.Clone(deliveries), d.inbox...)
}

// acknowledge marks the signals as applied whose events a committed round holds.
func (d *driver) acknowledge() {
	for _, v := range d.unsettled {
		close(v.applied)
	}
	d.unsettled = nil
}

// wake sees to it that a parked orchestration is driven again when it has something to do.
func (d *driver) wake(ctx context.Context, at time.Time) error {
	if at.IsZero() {
		return nil // what it waits for comes as a signal by itself
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	s := Signal{InstanceID: d.start.ID, Type: TimerDue, DueAtUtc: &at, ExpectedVersion: int64(d.version)}
	if t := d.execution.waitingFor(); t != nil {
		s.WaitingToken = fmt.Sprintf("%d-%d", d.execution.number, t.number)
		if t.attempts > 0 {
			s.Type = RetryDue
		}
	}
	s.SignalID = fmt.Sprintf("%s:%s:%d", s.Type, s.InstanceID, at.UnixMicro())
	// Beyond the longest delay it comes early, finds nothing due, and is sent again.
	return d.rt.send(ctx, s, min(at.Sub(d.rt.config.Now()), queues.MaxDelay))
}
