package orchestrator

import (
	"slices"
	"strings"
)

// Event is a Future for the next external event of this name (case does not matter). Events are given out in the order
// in which they came, each to one Future; one that comes before anybody asks for it is kept, also when the orchestration
// continues as new. For a wait with a time-out, use Any with a Timer; a Future that has lost such a race still waits, and
// takes the next event of its name, so go on with it rather than making another.
func Event[T any](ctx *Context, name string) *Future[T] {
	return &Future[T]{ctx: ctx, task: ctx.execution.awaitEvent(name)}
}

// awaitEvent makes a wait for an event, which may be there already.
func (x *execution) awaitEvent(name string) *task {
	t := x.add(&task{kind: eventTask, name: name})
	x.decide(event{Kind: eventAwaited, Task: t.number, Name: name})
	for i, e := range x.unread {
		if strings.EqualFold(e.Name, name) {
			x.unread = append(x.unread[:i:i], x.unread[i+1:]...)
			x.complete(t, e.Payload, nil)
			break
		}
	}
	return t
}

// raised gives an event to the wait that is longest there, or keeps it. It tells whether somebody can go on.
func (x *execution) raised(e event) bool {
	for _, t := range x.tasks {
		if t.kind == eventTask && !t.done && strings.EqualFold(t.name, e.Name) {
			x.complete(t, e.Payload, nil)
			return true
		}
	}
	x.unread = append(x.unread, e)
	return false
}

// knows says whether a signal has been applied before.
func (x *execution) knows(signal string) bool {
	return signal != "" && slices.Contains(x.signals, signal)
}

// rememberedSignals is how many signals an execution knows of the one that continued as new as it.
const rememberedSignals = 64

// inheritance is what an execution that continues as new leaves to the next: unread events and the signals last applied.
func (x *execution) inheritance() *inheritance {
	h := inheritance{Unread: x.unread, Signals: x.signals[max(0, len(x.signals)-rememberedSignals):]}
	if len(h.Unread) == 0 && len(h.Signals) == 0 {
		return nil
	}
	return &h
}

type inheritance struct {
	Unread  []event  `json:"unread,omitempty"`
	Signals []string `json:"signals,omitempty"`
}

// terminatedFailure is how a termination shows to who waited for the orchestration.
func terminatedFailure(reason string) *Failure {
	text := "the orchestration was terminated"
	if reason != "" {
		text += ": " + reason
	}
	return &Failure{Message: text, Code: "Terminated", Permanent: true}
}
