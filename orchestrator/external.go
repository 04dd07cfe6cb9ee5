package orchestrator

import (
	"slices"
	"strings"
)

// Event is a Future for an external event of this name (case does not matter). Events are given out in the order in which
// they came, each to one Future, and only while somebody waits for it: one that has lost a race takes none. What comes
// before anybody waits is kept, also when the orchestration continues as new. For a wait with a time-out, use Any with a
// Timer.
func Event[T any](ctx *Context, name string) *Future[T] {
	return &Future[T]{ctx: ctx, task: ctx.execution.awaitEvent(name)}
}

func (x *execution) awaitEvent(name string) *task {
	t := x.add(&task{kind: eventTask, name: name})
	x.decide(event{Kind: eventAwaited, Task: t.number, Name: name})
	return t
}

// raised gives an event to the fiber that waits for it, the oldest of several, or keeps it. It tells whether somebody can
// go on.
func (x *execution) raised(e event) bool {
	for _, f := range x.fibers {
		for _, t := range f.waiting {
			if !f.ended && !f.ready() && t.takes(e) {
				x.complete(t, e.Payload, nil)
				return true
			}
		}
	}
	if x.drop && x.replaying {
		return false
	}
	if x.drop {
		x.log.Warn("nobody waits for the event: it is dropped", "orchestration", x.id, "event", e.Name, "signal", e.Signal)
		return false
	}
	x.unread = append(x.unread, e)
	return false
}

// serve gives an event that is kept to the first of the tasks that takes one.
func (x *execution) serve(tasks []*task) {
	for _, t := range tasks {
		for i, e := range x.unread {
			if t.takes(e) {
				x.unread = append(x.unread[:i:i], x.unread[i+1:]...)
				x.complete(t, e.Payload, nil)
				return
			}
		}
	}
}

func (t *task) takes(e event) bool {
	return t.kind == eventTask && !t.done && strings.EqualFold(t.name, e.Name)
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

func (h *inheritance) unread() []event {
	if h == nil {
		return nil
	}
	return h.Unread
}

type inheritance struct {
	Unread  []event  `json:"unread,omitempty"`
	Signals []string `json:"signals,omitempty"`
}
