package orchestrator

import (
	"fmt"
	"maps"
	"slices"
)

// Event returns a Future for an external event of this name (case does not matter). Events are delivered in the order
// in which they arrived, each to one Future, and only to a Future that a coroutine waits for. A Future that has lost a
// race gets none. An event that arrives before such a wait is kept, also when the orchestration continues as new. For
// a wait with a timeout, use Any with a Timer.
func Event[T any](ctx *Context, name string) *Future[T] {
	if ctx.isCanceled() {
		return failedFuture[T](ctx, canceledError("event "+name))
	}
	return &Future[T]{ctx: ctx, task: ctx.execution.awaitEvent(ctx, name)}
}

func (x *execution) awaitEvent(ctx *Context, name string) *task {
	x.noteAction() // the event may report a manual undo
	name = cleanText(name)
	t := x.add(task{kind: eventTask, name: name, shielded: ctx.shielded})
	ctx.scope.add(t)
	x.decide(event{Kind: eventAwaited, Task: t.number, Name: name, Shielded: t.shielded})
	return t
}

// applyRaised gives an event to the coroutine that waits for it, the oldest of several, or else keeps it. It reports
// whether a coroutine can continue.
func (x *execution) applyRaised(e event) bool {
	if len(x.withheld) > 0 {
		x.withheld = append(x.withheld, e) // it arrived after those
		return false
	}
	if t := x.receivers.first(e.Name); t != nil {
		x.complete(t, e.Payload, nil)
		return true
	}
	if x.dropEarly && x.replaying {
		return false
	}
	if x.dropEarly {
		x.ownLog().Warn("nobody waits for the event: it is dropped", "event", e.Name, "signalId", e.signal().ID)
		return false
	}
	x.unread.put(e)
	return false
}

// release lets the code see the next events of the previous attempts.
func (x *execution) release(count int) error {
	if count > len(x.withheld) {
		return fmt.Errorf("%d events are released of %d: %w", count, len(x.withheld), ErrCorrupt)
	}
	for ; count > 0 && !x.ended; count-- { // after a continue as new, the next execution gets the rest
		e, rest := x.withheld[0], x.withheld[1:]
		x.withheld = nil
		seen := x.applyRaised(e)
		if x.withheld = rest; seen {
			x.turn()
		}
	}
	return nil
}

// deliverKept gives the oldest kept event that one of the tasks waits for to that task.
func (x *execution) deliverKept(tasks []*task) {
	var first *keptEvent
	var by *task
	for _, t := range tasks {
		if t.kind != eventTask || t.done {
			continue
		}
		if k := x.unread.oldest(t.name); k != nil && (first == nil || k.place < first.place) {
			first, by = k, t
		}
	}
	if first != nil {
		x.unread.take(first)
		x.complete(by, first.Payload, nil)
	}
}

// TryReceive returns the oldest kept event of this name (case does not matter) without waiting; ok reports whether one
// was kept. Use it to drain the arrived events before the orchestration continues as new or ends.
func TryReceive[T any](ctx *Context, name string) (v T, ok bool, err error) {
	x := ctx.execution
	if x.unread.oldest(cleanText(name)) == nil {
		return v, false, nil
	}
	t := x.awaitEvent(ctx, name)
	x.deliverKept([]*task{t})
	v, err = (&Future[T]{ctx: ctx, task: t}).Await()
	return v, true, err
}

// inheritance returns the state that an execution leaves to the next one when it continues as new: unread events, and
// the streams of events that it sends to other orchestrations.
func (x *execution) inheritance() *inheritance {
	sent := maps.Clone(x.outgoing)
	maps.DeleteFunc(sent, func(_ string, s sentStream) bool { return s.At < x.last-SignalHorizon.Microseconds() })
	h := inheritance{Unread: slices.Concat(x.unread.list(x.unread.len()), x.withheld, x.overtakers.list()), Suspended: x.suspended, Commanded: x.commandedAt, Sent: sent}
	return h.orNone()
}

// with adds the state that the rounds alone hold: the received signals.
func (h *inheritance) with(m receivedSignals, now int64) *inheritance {
	var next inheritance
	if h != nil {
		next = *h
	}
	m.saveTo(&next, now)
	return next.orNone()
}

// orNone returns nil for an empty inheritance.
func (h inheritance) orNone() *inheritance {
	if len(h.Unread)+len(h.Signals)+len(h.Applied)+len(h.Streams)+len(h.Senders)+len(h.Sent) == 0 && h.Commanded == 0 && !h.Suspended {
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

// inheritance is the state that an execution takes over from the previous one.
type inheritance struct {
	Unread []event `json:"unread,omitempty"`
	// Signals holds the id of the last applied signal, and Applied the digests of the recent ones. Older versions put
	// some ids into Signals. The JSON name of Applied is an old one.
	Signals   []string      `json:"signals,omitempty"`
	Applied   []appliedHour `json:"heard,omitempty"`
	Suspended bool          `json:"suspended,omitempty"`
	Commanded int64         `json:"commanded,omitempty"`
	// Streams is written by older versions in place of Senders.
	Streams map[string]int `json:"streams,omitempty"`
	// Senders are the streams of events that were received, Sent those that were sent.
	Senders senders               `json:"senders,omitempty"`
	Sent    map[string]sentStream `json:"sent,omitempty"`
}
