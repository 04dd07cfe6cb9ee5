package orchestrator

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// These bound how long an event is held back for the previous one of its sender: as long as a message can take. An
// orchestration that has received no event of this sender may be new under its id, and the earlier event was for
// another one. That is likely if the earlier event was sent before it began and another run was under the id before.
const (
	maxHoldKnownSender = 24 * time.Hour
	maxHoldNewSender   = time.Hour
	maxHoldEarlierRun  = 10 * time.Minute
)

// overtakers holds events of other orchestrations that arrived before an earlier event of their sender, by stream, in
// the order in which they were sent. The zero value is empty.
type overtakers map[string][]event

func (o *overtakers) put(e event) {
	if *o == nil {
		*o = overtakers{}
	}
	stream := e.signal().Stream
	all := (*o)[stream]
	i, _ := slices.BinarySearchFunc(all, e, func(a, b event) int { return cmp.Compare(a.signal().Sequence, b.signal().Sequence) })
	(*o)[stream] = slices.Insert(all, i, e)
}

// next reports whether the first event of a stream can be released, given the received ones.
func (o overtakers) next(stream string, m *receivedSignals) bool {
	return len(o[stream]) > 0 && o[stream][0].signal().Sequence <= m.senders[stream].Sequence+1
}

// take removes and returns the first event of a stream, which becomes visible at the given time, in microseconds.
func (o overtakers) take(stream string, m *receivedSignals, at int64) event {
	e := o[stream][0]
	if o[stream] = o[stream][1:]; len(o[stream]) == 0 {
		delete(o, stream)
	}
	by := e.signal()
	by.Overtakes = false
	e.Signal, e.At = &by, max(e.At, at)
	m.advanceStream(stream, sender{by.Sequence, e.At})
	return e
}

// follow removes and returns the events of a stream that can be released.
func (o overtakers) follow(stream string, m *receivedSignals, at int64) (free []event) {
	for o.next(stream, m) {
		free = append(free, o.take(stream, m, at))
	}
	return free
}

// sort accepts the events that an execution inherits. It keeps those that wait for an earlier one, and returns the
// others in order.
func (o *overtakers) sort(events []event, m *receivedSignals, at int64) (free []event) {
	for _, e := range events {
		if e.signal().Overtakes {
			o.put(e)
		} else {
			free = append(free, e)
		}
	}
	for _, stream := range slices.Sorted(maps.Keys(*o)) {
		free = append(free, o.follow(stream, m, at)...)
	}
	return free
}

// list returns all events, the streams in the order of their names.
func (o overtakers) list() (all []event) {
	for _, stream := range slices.Sorted(maps.Keys(o)) {
		all = append(all, o[stream]...)
	}
	return all
}

// overtakes reports whether an event arrived before an earlier one of its sender, and has to wait for it.
func (x *execution) overtakes(e event, now time.Time) bool {
	s := e.signal()
	return s.Stream != "" && s.Previous != 0 && s.Sequence > x.received.senders[s.Stream].Sequence+1 && now.Before(x.holdUntil(e))
}

// holdUntil returns until when an event waits for the previous one of its sender.
func (x *execution) holdUntil(e event) time.Time {
	s := e.signal()
	switch {
	case x.received.senders[s.Stream].Sequence > 0:
		return fromMicros(s.Previous).Add(maxHoldKnownSender)
	case s.Previous < x.runBegan:
		return fromMicros(s.Previous).Add(maxHoldEarlierRun)
	default:
		return fromMicros(s.Previous).Add(maxHoldNewSender)
	}
}

// nextHeld returns the stream whose first held event stops waiting first, and when; "" for none.
func (x *execution) nextHeld() (stream string, at time.Time) {
	if len(x.overtakers) == 0 {
		return "", at
	}
	for _, name := range slices.Sorted(maps.Keys(x.overtakers)) {
		if until := x.holdUntil(x.overtakers[name][0]); stream == "" || until.Before(at) {
			stream, at = name, until
		}
	}
	return stream, at
}

// seeFollowing lets the code see the events of a stream that can be released, and with skips the first one in any
// case. When the execution continues as new, the next one gets the rest.
func (x *execution) seeFollowing(stream string, skips bool, at int64) {
	for !x.ended && (skips && len(x.overtakers[stream]) > 0 || x.overtakers.next(stream, &x.received)) {
		skips = false
		if x.applyRaised(x.overtakers.take(stream, &x.received, at)) {
			x.turn()
		}
	}
}
