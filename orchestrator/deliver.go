package orchestrator

import (
	"context"
	"encoding/json"
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
	s, err := r.unpack(ctx, s)
	if errors.Is(err, ErrNotFound) && s.Type != ExternalSignal {
		r.tally(func(c *Counts) { c.Stale++ })
		return Outcome{ID: s.InstanceID}, nil // what it brought is kept, or was purged
	}
	if err != nil {
		return Outcome{}, err
	}
	out, err := r.deliver(ctx, s)
	if by := s.Payload.Caller; by != nil && errors.Is(err, ErrNotFound) {
		// It is stopped before it begins, so that a process which is about to begin it finds that it has ended.
		b := beginning{number: 1, event: event{Base: 1, First: 1, Payload: json.RawMessage("null")},
			start: Start{ID: s.InstanceID, Orchestrator: by.Orchestrator, CorrelationID: by.CorrelationID, Parent: by.ID}}
		if err = r.hold(ctx, b, nil, ""); err == nil || errors.Is(err, errLostRace) {
			out, err = r.deliver(ctx, s)
		}
	}
	switch {
	case err == nil:
		r.settled(ctx, s)
		if s.DueAtUtc != nil {
			r.forget(s.InstanceID, *s.DueAtUtc)
		}
	case errors.Is(err, ErrNotFound) && s.Type != ExternalSignal:
		r.tally(func(c *Counts) { c.Stale++ })
		r.settled(ctx, s)
		return out, nil // it was purged: nothing is left to wake
	}
	return out, err
}

func (r *Runtime) deliver(ctx context.Context, s Signal) (Outcome, error) {
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
		if err := r.remember(ctx, r.goOn(out.ID)); err != nil { // should the signal be lost
			return out, err
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
	case s.SignalID == fromCaller(out.ID), s.SignalID == notWanted(out.ID) && out.Rounds == 0:
		return out, nil // who called it knows; telling it again would make it cancel again
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
	if out.Status != Terminated || r.config.Queues == nil {
		return nil
	}
	var errs []error
	for _, c := range out.Calls {
		if c.Kind == OrchestrationCall && c.EndedAt.IsZero() {
			errs = append(errs, r.signal(ctx, c.Child, Payload{Command: commandTerminate, Reason: "its caller " + out.ID + " was terminated",
				Caller: &caller{ID: out.ID, CorrelationID: out.CorrelationID, Orchestrator: c.Name}}, fromCaller(c.Child)))
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
		switch d.judge(v.signal) {
		case signalNew:
			d.unsettled = append(d.unsettled, v)
			if err := d.takeIn(v.signal); err != nil {
				return err
			}
		case signalStale:
			d.rt.tally(func(c *Counts) { c.Stale++ })
			d.staleWake = d.staleWake || v.signal.Type != ExternalSignal
			close(v.applied)
		case signalKnown:
			d.rt.tally(func(c *Counts) { c.Duplicates++ })
			d.answer(v)
		case signalWakes:
			d.answer(v)
		}
	}
	return nil
}

// answer looks at everything again, for a signal that may be the last that knows of it.
func (d *driver) answer(v *delivery) {
	d.crew.rouse()
	d.fromAfar = false
	if v.signal.Payload.Lost {
		d.crew.sendAgain()
	}
	close(v.applied)
}

// verdict is what a signal is to an orchestration as it stands.
type verdict int

const (
	signalWakes verdict = iota // it brings nothing by itself
	signalNew                  // it brings something
	signalKnown                // it has brought it before
	signalStale                // what it is about is over
)

func (d *driver) judge(s Signal) verdict {
	x := d.execution
	brings := s.Type == ExternalSignal || len(s.Payload.Results) > 0
	switch {
	case s.Type == ExternalSignal && x.knows(s.SignalID):
		return signalKnown
	case x.ended && brings:
		return signalStale
	case x.ended:
		return signalWakes
	case s.Payload.Command == commandCancel && x.canceled != nil:
		return signalKnown // what has been called since then is to undo what is half done
	case len(s.Payload.Results) > 0:
		return x.judgeResults(s.Payload.Results)
	case s.WaitingToken != "" && d.over(s):
		return signalStale
	case brings && s.ExpectedVersion != 0 && s.ExpectedVersion != int64(d.version):
		return signalStale
	case !brings && s.ExpectedVersion > int64(d.version):
		return signalStale // of an orchestration that had this id before
	case brings:
		return signalNew
	default:
		return signalWakes
	}
}

// over says that nobody waits any more where the token says. A timer that has fired is not over for its own signal: that
// may be the last that knows of what followed. Neither is anything of another execution.
func (d *driver) over(s Signal) bool {
	var execution, number int
	if _, err := fmt.Sscanf(s.WaitingToken, "%d-%d", &execution, &number); err != nil {
		return true
	}
	if execution != d.execution.number {
		return s.Type == ExternalSignal
	}
	t := d.execution.task(number)
	return t == nil || t.canceled || t.done && s.Type == ExternalSignal
}

// bringsOnlyNew says that whatever is in the inbox is new to the orchestration, or stale.
func (d *driver) bringsOnlyNew() bool {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	for _, v := range d.inbox {
		if j := d.judge(v.signal); j != signalNew && j != signalStale {
			return false
		}
	}
	return true
}

// takeIn learns what a signal brings.
func (d *driver) takeIn(s Signal) error {
	if len(s.Payload.Results) > 0 {
		return d.takeResults(s.Payload.Results)
	}
	e, _ := s.event()
	return d.learn(e)
}

// hasMail says that there are signals which have not been read.
func (d *driver) hasMail() bool {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	return len(d.inbox) > 0
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
