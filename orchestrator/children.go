package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// cancelChildren cancels the sub-orchestrations of the calls that the event has interrupted. Without queues they
// cannot be reached, and continue.
func (d *driver) cancelChildren(ctx context.Context, e event) error {
	var errs []error
	for i, c := range d.summary().Calls {
		if c.Kind != OrchestrationCall || !c.canceledAt(e.At) {
			continue
		}
		command := commandCancel
		if e.Kind == executionCanceled && c.Close == AbandonChild {
			command = string(AbandonChild)
		}
		errs = append(errs, d.commandChild(ctx, i+1, c, command, "its caller "+d.start.ID+" canceled it"))
	}
	return errors.Join(errs...)
}

// canceledAt reports whether the call was interrupted at that time.
func (c Call) canceledAt(micros int64) bool {
	return c.Failure != nil && c.Failure.Code == codeCanceled && c.EndedAt.Equal(fromMicros(micros))
}

// closeChildren applies the parent close policies of the sub-orchestrations that are open at the end of their caller's
// execution. It wakes abandoned ones, because their caller may have driven them.
func (d *driver) closeChildren(ctx context.Context, end event) error {
	terminated := end.Kind == executionStopped && end.Failure.Code == codeTerminated
	var errs []error
	for i, c := range d.summary().Calls {
		if c.Kind != OrchestrationCall || !c.EndedAt.IsZero() {
			continue
		}
		policy := cmp.Or(c.Close, CancelChild)
		if terminated && policy != AbandonChild {
			policy = TerminateChild
		}
		why := "its caller " + d.start.ID + " has ended"
		if policy == AbandonChild && d.rt.config.Now().Sub(fromMicros(end.At)) < d.rt.config.LostAfter { // a late duplicate starts nothing
			errs = append(errs, d.startAbandoned(ctx, i+1, c))
		}
		errs = append(errs, d.commandChild(ctx, i+1, c, string(policy), why))
		if policy == AbandonChild && c.attempts > 1 {
			errs = append(errs, d.commandChild(ctx, i+1, c, commandGiveUp, why)) // no caller makes another attempt
		}
	}
	return errors.Join(errs...)
}

// startAbandoned starts an abandoned sub-orchestration, unless it has begun: its caller may have ended in the turn
// that called it.
func (d *driver) startAbandoned(ctx context.Context, number int, c Call) error {
	if d.rt.config.Queues == nil {
		return nil
	}
	input, err := d.inputOf(ctx, number)
	if err != nil {
		return err
	}
	var timeout time.Duration
	if t := d.execution.task(number); t != nil {
		timeout = t.options.timeout
	}
	s := Start{ID: c.Child, Orchestrator: c.Name, Input: input, Timeout: timeout, CorrelationID: d.start.CorrelationID, TenantID: d.start.TenantID, Trace: d.ownTrace(), Parent: d.start.ID,
		call: &callRef{Execution: d.execution.number, Task: number, Attempt: 1, Since: d.execution.base}}
	_, err = d.rt.Start(ctx, s)
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrExists) {
		return nil // it has begun, or the call has failed
	}
	if err != nil {
		return fmt.Errorf("start of the abandoned orchestration %s by %s: %w", c.Child, d.start.ID, err)
	}
	return nil
}

// inputOf returns the input of a call, which may be in a blob.
func (d *driver) inputOf(ctx context.Context, number int) (json.RawMessage, error) {
	for _, r := range d.rounds {
		for _, e := range r.Decided {
			if e.Task == number && callKind(e.Kind) != "" {
				err := d.rt.journal.fetchOne(ctx, d.start.ID, &e)
				return e.Payload, err
			}
		}
	}
	return nil, fmt.Errorf("call %d of orchestration %s: %w", number, d.start.ID, ErrCorrupt)
}

// giveUpChild notifies a failed sub-orchestration that expects another attempt that none follows.
func (d *driver) giveUpChild(ctx context.Context, e event) error {
	calls := d.summary().Calls
	if e.Failure.Permanent || e.Task > len(calls) || calls[e.Task-1].attempts <= e.Attempt {
		return nil
	}
	return d.commandChild(ctx, e.Task, calls[e.Task-1], commandGiveUp, e.Failure.Message)
}

// checkCallers returns ErrConflict when a sub-orchestration has the id of a caller: both would wait for each other.
// This can only happen with an id that WithID gives.
func (r *Runtime) checkCallers(ctx context.Context, s Start) error {
	if !s.named || s.Resume {
		return nil
	}
	for caller := s.Parent; caller != ""; {
		if caller == s.ID {
			return fmt.Errorf("orchestration %s is a caller of this call: %w", s.ID, ErrConflict)
		}
		above, err := r.Status(ctx, caller)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find the callers of orchestration %s: %w", s.ID, err)
		}
		caller = above.Parent
	}
	return nil
}

// commandChild sends a command to a sub-orchestration, once for each call.
func (d *driver) commandChild(ctx context.Context, number int, c Call, command, reason string) error {
	if d.rt.config.Queues == nil {
		return nil
	}
	id := fmt.Sprintf("%s:%s:%d-%d", command, c.Child, d.execution.number, number)
	if command == string(AbandonChild) {
		return d.rt.send(ctx, Signal{SignalID: id, InstanceID: c.Child, Type: InternalContinue, Payload: Payload{Lost: true}}, 0)
	}
	by := &caller{ID: d.start.ID, CorrelationID: d.start.CorrelationID, TenantID: d.start.TenantID, Orchestrator: c.Name, Call: callRef{Execution: d.execution.number, Task: number}}
	return d.rt.signal(ctx, c.Child, Payload{Command: command, Reason: reason, Caller: by}, id)
}

// notifyParent notifies the caller that the execution it called has ended. A driver that has worked for the caller
// from the beginning returns the outcome in memory instead, because the caller's message stays in its queue until the
// caller knows. If the signal is lost, the sweeper finds the caller that still waits.
func (d *driver) notifyParent(ctx context.Context, end event) error {
	handedOver := d.start.call != nil && !d.start.deliver && !d.notifiesParent
	if d.start.Parent == "" || end.Kind == executionContinued || handedOver || d.rt.config.Queues == nil {
		return nil
	}
	now := d.rt.config.Now()
	if err := d.rt.addParked(ctx, parkedEntry{id: d.start.Parent, due: now, since: now, child: d.start.ID}); err != nil {
		return err
	}
	return d.rt.send(ctx, Signal{SignalID: fmt.Sprintf("end:%s:%d", d.start.ID, d.execution.number), InstanceID: d.start.Parent,
		Type: SubWorkflowCompleted, Payload: Payload{Child: d.start.ID}}, 0)
}
