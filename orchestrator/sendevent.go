package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
)

// RaiseEvent sends an event to another orchestration. The event is part of the round: it is sent if and only if the
// round is committed, at least once, and is applied once. Events from this orchestration to another arrive in order.
// RaiseEvent does not wait for that, and does not report whether the other orchestration exists.
func RaiseEvent(ctx *Context, id, name string, data any) error {
	x := ctx.execution
	payload, err := encodePayload(data)
	switch {
	case err != nil:
	case !validID(id):
		err = fmt.Errorf("the orchestration id needs 1 to 400 bytes of UTF-8, not %d", len(id))
	case name == "" || len(name) > maxSignalName:
		err = fmt.Errorf("the name of an event has 1 to %d bytes", maxSignalName)
	case !x.signals:
		err = ErrNoSignals
	}
	if err != nil {
		return Permanent(fmt.Errorf("event %.64q: %w", name, err))
	}
	if ctx.isCanceled() {
		return canceledError("event " + name)
	}
	x.sendEvent(id, cleanText(name), payload)
	return nil
}

// sentStream is the state of the stream of events to another orchestration.
type sentStream struct {
	Stream string `json:"stream"`
	Count  int    `json:"count"`
	At     int64  `json:"at"` // when the last event was sent, in microseconds
}

func (x *execution) sendEvent(id, name string, payload json.RawMessage) {
	x.noteAction()
	if x.outgoing == nil {
		x.outgoing = map[string]sentStream{}
	}
	s, known := x.outgoing[id]
	if !known {
		s.Stream = fmt.Sprintf("%s/%d", x.id, x.base)
	}
	s.Count++
	key := x.childID("event "+name, append(json.RawMessage(id+"\n"), payload...))
	x.decide(event{Kind: eventSent, Name: name, Payload: payload, Target: &target{Child: id},
		Signal: &signalDetails{ID: "sent:" + hashOf([]byte(key))[:32], Stream: s.Stream, Sequence: s.Count, Previous: s.At}})
	s.At = x.last
	x.outgoing[id] = s
}

// sendEvent sends an event that RaiseEvent has decided.
func (d *driver) sendEvent(ctx context.Context, e event) error {
	s := e.signal()
	p := Payload{Event: e.Name, Data: e.Payload, Stream: s.Stream, Sequence: s.Sequence}
	if s.Previous > 0 {
		at := fromMicros(s.Previous)
		p.Previous = &at
	}
	to := e.target().Child
	trace := d.spanContext(func() string { return EventSpan(to, s.ID) })
	return d.rt.send(ctx, Signal{SignalID: s.ID, InstanceID: to, Type: ExternalSignal, Trace: trace, Payload: p}, 0)
}
