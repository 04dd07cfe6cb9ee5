package orchestrator

import (
	"fmt"
)

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
