package orchestrator

import (
	"fmt"
	"slices"
)

// signalClass is the meaning of a signal for an orchestration in its current state.
type signalClass int

const (
	signalWakes     signalClass = iota // it only wakes
	signalNew                          // its contents are new
	signalKnown                        // its contents were applied before
	signalStale                        // its subject is over
	signalOfChild                      // an awaited sub-orchestration has ended
	signalTakesOver                    // this process takes over from a node that is gone
)

func (d *driver) classify(s Signal) signalClass {
	x := d.execution
	brings := s.Type == ExternalSignal || len(s.Payload.Results) > 0
	switch {
	case s.Type == ExternalSignal && x.received.contains(s.SignalID):
		return signalKnown
	case brings && x.ended && (!x.end.Retrying || s.Type != ExternalSignal):
		return signalStale
	case s.Payload.Child != "" && x.undoOfChild(s.Payload.Child) != nil:
		return signalOfChild
	case s.Payload.Child != "" && d.childEndUnneeded(s.Payload.Child):
		return signalStale
	case x.ended && !brings:
		return signalWakes
	case s.Payload.TakenFrom != "":
		return d.classifyTakeover(s)
	case len(s.Payload.Results) > 0:
		return x.classifyResults(s.Payload.Results)
	case s.Payload.Child != "" && x.openChild(s.Payload.Child) != nil:
		return signalOfChild
	case s.WaitingToken != "" && d.waitIsOver(s):
		return signalStale
	case brings && s.ExpectedVersion != 0 && s.ExpectedVersion != int64(d.version):
		return signalStale
	case s.Payload.Command != "":
		return x.classifyCommand(s)
	case !brings && s.ExpectedVersion > int64(d.version):
		return signalStale // it is for an orchestration that had this id before
	case brings:
		return signalNew
	default:
		return signalWakes
	}
}

// classifyCommand classifies a command to an execution that has not ended for good.
func (x *execution) classifyCommand(s Signal) signalClass {
	by, given := s.Payload.Caller, s.OccurredAtUtc.UnixMicro()
	switch s.Payload.Command {
	case commandSuspend, commandResume:
		if given > 0 && given < x.commandedAt {
			return signalStale // a later command has been applied
		}
	case commandCancel:
		if x.canceled != nil {
			return signalStale // it is canceled already
		}
	case commandGiveUp:
		if !x.ended {
			return signalStale // another attempt has begun
		}
	}
	if by != nil && x.call != nil && by.Call.Execution > 0 && !by.Call.same(*x.call) {
		return signalStale // it is for an earlier call
	}
	return signalNew
}

// waitIsOver reports whether the wait that the signal's token names is over. The wait of a timer is not over for the
// timer's own signal after it has fired, because this may be the last message for the calls that followed. Nor is a
// wait of another execution, or of one with unknown calls.
func (d *driver) waitIsOver(s Signal) bool {
	var execution, number int
	if _, err := fmt.Sscanf(s.WaitingToken, "%d-%d", &execution, &number); err != nil {
		return true
	}
	if d.codeless {
		return false
	}
	if execution != d.execution.number {
		return s.Type == ExternalSignal
	}
	t := d.execution.task(number)
	return t == nil || t.canceled || t.done && s.Type == ExternalSignal
}

// inboxBringsOnlyNew reports whether every signal in the inbox is new to the orchestration, or stale.
func (d *driver) inboxBringsOnlyNew() bool {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	for _, v := range d.inbox {
		if j := d.classify(v.signal); j == signalKnown || j == signalWakes || j == signalTakesOver {
			return false
		}
	}
	return true
}

// inboxIsFromOthers reports whether every signal in the inbox is an event, a command, the end of a sub-orchestration,
// or results of activities. Signals of other types may have been delivered before, and be the last message for the
// current state. Results prove that their batch was sent: sending it again before they are learned would run its
// activities again.
func (d *driver) inboxIsFromOthers() bool {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	return !slices.ContainsFunc(d.inbox, func(v *delivery) bool {
		return v.signal.Type != ExternalSignal && v.signal.Payload.Child == "" && len(v.signal.Payload.Results) == 0
	})
}

// childEndUnneeded reports whether the execution called the sub-orchestration but did not use its end: the execution
// ended before, or canceled the call. A sub-orchestration that it did not call may belong to an earlier execution,
// which used its end.
func (d *driver) childEndUnneeded(child string) bool {
	if d.codeless && !d.execution.ended {
		return false
	}
	called := false
	for _, c := range d.summary().Calls {
		if c.Child != child {
			continue
		}
		called = true
		if !c.wasCanceled() && (!c.EndedAt.IsZero() || !d.execution.ended) {
			return false
		}
	}
	return called
}

// wasCanceled reports whether the call ended because it was interrupted.
func (c Call) wasCanceled() bool {
	return c.Failure != nil && c.Failure.Code == codeCanceled && c.Attempts == 0
}
