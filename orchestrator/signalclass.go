package orchestrator

import (
	"fmt"
)

// signalClass is what a signal is to an orchestration as it stands.
type signalClass int

const (
	signalWakes   signalClass = iota // it brings nothing by itself
	signalNew                        // it brings something
	signalKnown                      // it has brought it before
	signalStale                      // what it is about is over
	signalOfChild                    // a sub-orchestration that is waited for has ended
	signalEarly                      // it comes before what its sender sent earlier
)

func (d *driver) classify(s Signal) signalClass {
	x := d.execution
	brings := s.Type == ExternalSignal || len(s.Payload.Results) > 0
	switch {
	case s.Type == ExternalSignal && x.received.contains(s.SignalID):
		return signalKnown
	case brings && x.ended && (!x.end.Retrying || s.Type != ExternalSignal):
		return signalStale
	case s.Payload.Child != "" && d.childEndUnneeded(s.Payload.Child):
		return signalStale
	case x.ended && !brings:
		return signalWakes
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
	case d.isEarly(s.Payload):
		return signalEarly
	case !brings && s.ExpectedVersion > int64(d.version):
		return signalStale // of an orchestration that had this id before
	case brings:
		return signalNew
	default:
		return signalWakes
	}
}

// classifyCommand says what a command is to an execution that has not ended for good.
func (x *execution) classifyCommand(s Signal) signalClass {
	by, given := s.Payload.Caller, s.OccurredAtUtc.UnixMicro()
	switch s.Payload.Command {
	case commandSuspend, commandResume:
		if given > 0 && given < x.commandedAt {
			return signalStale // a later one was here before
		}
	case commandCancel:
		if x.canceled != nil {
			return signalStale // once is enough
		}
	case commandGiveUp:
		if !x.ended {
			return signalStale // somebody has revived it
		}
	}
	if by != nil && x.call != nil && by.Call.Execution > 0 && !by.Call.same(*x.call) {
		return signalStale // for an earlier call
	}
	return signalNew
}

// waitIsOver says that nobody waits any more where the token says. A timer that has fired is not over for its own signal: that
// may be the last that knows of what followed. Neither is anything of another execution, nor of one whose calls are not
// known.
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

// inboxBringsOnlyNew says that whatever is in the inbox is new to the orchestration, or stale.
func (d *driver) inboxBringsOnlyNew() bool {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	for _, v := range d.inbox {
		if j := d.classify(v.signal); j == signalKnown || j == signalWakes {
			return false
		}
	}
	return true
}

// inboxBringsNothing says that nothing in the inbox has had a part in what the orchestration is: it is what others sent, or the
// end of a sub-orchestration, that was not taken in and is stale. Anything else may have been delivered before.
func (d *driver) inboxBringsNothing() bool {
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	for _, v := range d.inbox {
		foreign := v.signal.Type == ExternalSignal || v.signal.Payload.Child != ""
		if !foreign || d.classify(v.signal) != signalStale {
			return false
		}
	}
	return len(d.inbox) > 0
}

// childEndUnneeded says that the execution has called a sub-orchestration, and has ended before it heard of its end, or did not
// want it any more. One that it has not called may have been an earlier execution's, which heard of it.
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

// wasCanceled says that the call ended because it was interrupted.
func (c Call) wasCanceled() bool {
	return c.Failure != nil && c.Failure.Code == codeCanceled && c.Attempts == 0
}
