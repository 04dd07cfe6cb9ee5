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
	if ctx.isCanceled() {
		return failedFuture[T](ctx, canceledError("event "+name))
	}
	return &Future[T]{ctx: ctx, task: ctx.execution.awaitEvent(ctx, name)}
}

func (x *execution) awaitEvent(ctx *Context, name string) *task {
	name = strings.ToValidUTF8(name, "\ufffd")
	t := x.add(&task{kind: eventTask, name: name, shielded: ctx.shielded})
	x.decide(event{Kind: eventAwaited, Task: t.number, Name: name, Shielded: t.shielded})
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

// serve gives the oldest event that is kept, and that one of the tasks takes, to that task.
func (x *execution) serve(tasks []*task) {
	for i, e := range x.unread {
		for _, t := range tasks {
			if t.takes(e) {
				x.unread = slices.Delete(x.unread, i, i+1)
				x.complete(t, e.Payload, nil)
				return
			}
		}
	}
}

// TryReceive takes the oldest external event of this name (case does not matter) that is kept, without waiting; ok says
// that there was one. It is for draining what has come before the orchestration continues as new or ends.
func TryReceive[T any](ctx *Context, name string) (v T, ok bool, err error) {
	x := ctx.execution
	if !slices.ContainsFunc(x.unread, func(e event) bool { return strings.EqualFold(e.Name, name) }) {
		return v, false, nil
	}
	t := x.awaitEvent(ctx, name)
	x.serve([]*task{t})
	v, err = (&Future[T]{ctx: ctx, task: t}).Await()
	return v, true, err
}

func (t *task) takes(e event) bool {
	return t.kind == eventTask && !t.done && strings.EqualFold(t.name, e.Name)
}

// knows says whether a signal has been applied before.
func (x *execution) knows(signal string) bool {
	return signal != "" && slices.Contains(x.applied, signal)
}

// rememberedSignals is how many signals an execution knows of the one that continued as new as it.
const rememberedSignals = 64

// inheritance is what an execution that continues as new leaves to the next: unread events, the signals last applied, and
// how far it is with events from and to others.
func (x *execution) inheritance() *inheritance {
	h := inheritance{Unread: x.unread, Signals: x.applied[max(0, len(x.applied)-rememberedSignals):],
		Suspended: x.suspended, Commanded: x.commanded, Streams: x.streams, Sent: x.outgoing}
	return h.orNone()
}

// orNone is nil when there is nothing to leave.
func (h inheritance) orNone() *inheritance {
	if len(h.Unread)+len(h.Signals)+len(h.Streams)+len(h.Sent) == 0 && h.Commanded == 0 && !h.Suspended {
		return nil
	}
	return &h
}

func (h *inheritance) suspended() bool { return h != nil && h.Suspended }

func (h *inheritance) unread() []event {
	if h == nil {
		return nil
	}
	return h.Unread
}

type inheritance struct {
	Unread    []event               `json:"unread,omitempty"`
	Signals   []string              `json:"signals,omitempty"`
	Suspended bool                  `json:"suspended,omitempty"`
	Commanded int64                 `json:"commanded,omitempty"`
	Streams   map[string]int        `json:"streams,omitempty"`
	Sent      map[string]sentStream `json:"sent,omitempty"`
}
