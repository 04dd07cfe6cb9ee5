package orchestrator

import "maps"

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
	name = cleanText(name)
	t := x.add(&task{kind: eventTask, name: name, shielded: ctx.shielded})
	x.decide(event{Kind: eventAwaited, Task: t.number, Name: name, Shielded: t.shielded})
	return t
}

// applyRaised gives an event to the fiber that waits for it, the oldest of several, or keeps it. It tells whether somebody can
// go on.
func (x *execution) applyRaised(e event) bool {
	if t := x.receivers.first(e.Name); t != nil {
		x.complete(t, e.Payload, nil)
		return true
	}
	if x.dropEarly && x.replaying {
		return false
	}
	if x.dropEarly {
		x.log.Warn("nobody waits for the event: it is dropped", "orchestration", x.id, "event", e.Name, "signal", e.Signal)
		return false
	}
	x.unread.put(e)
	return false
}

// deliverKept gives the oldest event that is kept, and that one of the tasks takes, to that task.
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

// TryReceive takes the oldest external event of this name (case does not matter) that is kept, without waiting; ok says
// that there was one. It is for draining what has come before the orchestration continues as new or ends.
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

// inheritance is what an execution that continues as new leaves to the next, of what its code alone knows: unread events,
// and how far it is with events to others.
func (x *execution) inheritance() *inheritance {
	sent := maps.Clone(x.outgoing)
	maps.DeleteFunc(sent, func(_ string, s sentStream) bool { return s.At < x.last-SignalHorizon.Microseconds() })
	h := inheritance{Unread: x.unread.list(x.unread.len()), Suspended: x.suspended, Commanded: x.commandedAt, Sent: sent}
	return h.orNone()
}

// with adds what the rounds tell.
func (h *inheritance) with(m receivedSignals, now int64) *inheritance {
	var next inheritance
	if h != nil {
		next = *h
	}
	m.saveTo(&next, now)
	return next.orNone()
}

// orNone is nil when there is nothing to leave.
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

// inheritance is how an execution begins that another one goes on as.
type inheritance struct {
	Unread []event `json:"unread,omitempty"`
	// Signals holds the last signal that was applied; Heard are those of a while. Older versions put some into Signals.
	Signals   []string      `json:"signals,omitempty"`
	Applied   []appliedHour `json:"heard,omitempty"`
	Suspended bool          `json:"suspended,omitempty"`
	Commanded int64         `json:"commanded,omitempty"`
	// Senders are the streams of events from others, Sent those to others. Older versions have Streams for Senders.
	Streams map[string]int        `json:"streams,omitempty"`
	Senders senders               `json:"senders,omitempty"`
	Sent    map[string]sentStream `json:"sent,omitempty"`
}
