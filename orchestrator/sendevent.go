package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ErrEarly: an event came before one that its sender sent earlier. Deliver it again in some seconds.
var ErrEarly = errors.New("the event came before an earlier one of its sender")

// For how long an event is held back for the one that its sender decided before it. An orchestration that has heard of the
// sender waits for as long as a message can take; one that has not may be new under its id, and what came before was for
// another one.
const (
	maxHoldKnownSender = 24 * time.Hour
	maxHoldNewSender   = time.Hour
)

// RaiseEvent sends an event to another orchestration. It is part of the round: it leaves if and only if the round is
// committed, at least once, is applied once, and comes in the order in which this orchestration has sent events to that
// one. RaiseEvent does not wait for that, and does not say whether there is such an orchestration.
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

// sentStream is how far an orchestration is with its events to one other.
type sentStream struct {
	Stream string `json:"stream"`
	Count  int    `json:"count"`
	At     int64  `json:"at"` // of the last, in microseconds
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
	x.decide(event{Kind: eventSent, Name: name, Child: id, Payload: payload, Signal: "sent:" + hashOf([]byte(key))[:32],
		Stream: s.Stream, Sequence: s.Count, Previous: s.At})
	s.At = x.last
	x.outgoing[id] = s
}

// sendEvent sends what RaiseEvent decided.
func (d *driver) sendEvent(ctx context.Context, e event) error {
	p := Payload{Event: e.Name, Data: e.Payload, Stream: e.Stream, Sequence: e.Sequence}
	if e.Previous > 0 {
		at := fromMicros(e.Previous)
		p.Previous = &at
	}
	return d.rt.signal(ctx, e.Child, p, e.Signal)
}

// isEarly says that an event is to wait for the one that its sender sent before it.
func (d *driver) isEarly(p Payload) bool {
	if p.Stream == "" || p.Previous == nil || p.Sequence <= d.execution.received.senders[p.Stream].Sequence+1 {
		return false
	}
	patience := maxHoldNewSender
	if d.execution.received.senders[p.Stream].Sequence > 0 {
		patience = maxHoldKnownSender
	}
	return d.rt.config.Now().Sub(*p.Previous) < patience
}
