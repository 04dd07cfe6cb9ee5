package orchestrator

import (
	"bytes"
	"encoding/json"
	"io"
)

// roundReader decodes rounds. It reads the output of appendRound, and leaves everything else to encoding/json: an
// event with other fields, for instance, or a whole round with white space. So it accepts the same input as
// encoding/json. The payloads of the events are parts of the input text, which must not change. The zero value is
// ready to use. Use one reader for many rounds to save memory, because it stores common strings once.
type roundReader struct {
	text  []byte
	at    int
	names map[string]string
	found []event // buffer for the list that is being read
	slab  []event // storage of the events of many rounds

	inflater io.ReadCloser // reused; nil before the first
}

// maxSlab bounds the events of one slab.
const maxSlab = 512

// usualEvent is the usual size of an event in bytes of JSON.
const usualEvent = 80

// read decodes a round.
func (d *roundReader) read(text []byte) (round, error) {
	d.text, d.at = text, 0
	if r, ok := d.round(); ok {
		return r, nil
	}
	var r round
	err := json.Unmarshal(text, &r)
	return r, err
}

func (d *roundReader) round() (r round, ok bool) {
	if !d.take('{') {
		return r, false
	}
	for first := true; !d.take('}'); first = false {
		if !first && !d.take(',') {
			return r, false
		}
		switch key, _ := d.key(); {
		case string(key) == "learned" && r.Learned == nil:
			r.Learned, ok = d.events()
		case string(key) == "decided" && r.Decided == nil:
			r.Decided, ok = d.events()
		case string(key) == "more" && !r.More:
			ok = d.literal("true")
			r.More = ok
		default:
			ok = false
		}
		if !ok {
			return r, false
		}
	}
	return r, d.at == len(d.text)
}

// events reads a non-empty list of events.
func (d *roundReader) events() ([]event, bool) {
	if !d.take('[') {
		return nil, false
	}
	d.found = d.found[:0]
	if left := len(d.text) - d.at; left > maxSlab*usualEvent {
		d.found = make([]event, 0, min(bytes.Count(d.text[d.at:], []byte(`{"kind":`)), left/usualEvent))
	}
	for {
		e, ok := d.event()
		if !ok {
			return nil, false
		}
		d.found = append(d.found, e)
		if d.take(']') {
			return d.kept(), true
		}
		if !d.take(',') {
			return nil, false
		}
	}
}

// kept copies the found events to a slab, unless they are so many that they keep their own array.
func (d *roundReader) kept() []event {
	if all := d.found; len(all) > maxSlab {
		d.found = nil
		return all[:len(all):len(all)]
	}
	if n := len(d.found); cap(d.slab)-len(d.slab) < n {
		d.slab = make([]event, 0, max(n, min(2*cap(d.slab), maxSlab)))
	}
	from := len(d.slab)
	d.slab = append(d.slab, d.found...)
	clear(d.found)
	return d.slab[from:len(d.slab):len(d.slab)]
}

// event reads an event, by encoding/json unless it is a plain one.
func (d *roundReader) event() (event, bool) {
	from := d.at
	if e, ok := d.plainEvent(); ok {
		return e, true
	}
	end, ok := jsonEnd(d.text, from)
	if !ok {
		return event{}, false
	}
	var s storedEvent
	err := json.Unmarshal(d.text[from:end], &s)
	d.at = end
	return s.event(), err == nil
}

// plainFields are the fields of plain events; each occurs at most once per event. Other fields are read by
// encoding/json, so this list needs no change when a field is added.
type plainFields struct {
	event  event
	child  string
	local  bool
	signal signalDetails
	seen   int // a bit for each field
}

// plainEvent reads an event that has plain fields only.
func (d *roundReader) plainEvent() (event, bool) {
	var p plainFields
	if !d.take('{') {
		return p.event, false
	}
	for {
		key, ok := d.key()
		if !ok || !d.eventField(&p, key) {
			return p.event, false
		}
		if d.take('}') {
			break
		}
		if !d.take(',') {
			return p.event, false
		}
	}
	if p.child != "" || p.local {
		p.event.Target = &target{Child: p.child, Local: p.local}
	}
	if p.signal != (signalDetails{}) {
		by := p.signal
		p.event.Signal = &by
	}
	return p.event, true
}

// eventField reads the value of a field of calls and results.
func (d *roundReader) eventField(p *plainFields, key []byte) (ok bool) {
	e := &p.event
	bit := 0
	switch string(key) {
	case "kind":
		bit = 1 << 0
		var kind string
		kind, ok = d.string()
		e.Kind = eventKind(kind)
	case "at":
		bit = 1 << 1
		e.At, ok = d.int()
	case "task":
		bit = 1 << 2
		e.Task, ok = d.number()
	case "name":
		bit = 1 << 3
		e.Name, ok = d.string()
	case "payload":
		bit = 1 << 4
		e.Payload, ok = d.value()
	case "blob":
		bit = 1 << 5
		e.Blob, ok = d.string()
	case "attempt":
		bit = 1 << 6
		e.Attempt, ok = d.number()
	case "due":
		bit = 1 << 7
		e.Due, ok = d.int()
	default:
		return d.otherField(p, key)
	}
	return ok && p.first(bit)
}

// otherField reads the value of a further field of calls of sub-orchestrations and of signals.
func (d *roundReader) otherField(p *plainFields, key []byte) (ok bool) {
	bit := 0
	switch string(key) {
	case "shielded":
		bit = 1 << 8
		ok = d.literal("true")
		p.event.Shielded = ok
	case "child":
		bit = 1 << 9
		p.child, ok = d.string()
	case "local":
		bit = 1 << 13
		ok = d.literal("true")
		p.local = ok
	case "signal":
		bit = 1 << 10
		p.signal.ID, ok = d.string()
	case "stream":
		bit = 1 << 11
		p.signal.Stream, ok = d.string()
	case "sequence":
		bit = 1 << 12
		p.signal.Sequence, ok = d.number()
	}
	return ok && p.first(bit)
}

// first reports whether a field occurs for the first time.
func (p *plainFields) first(bit int) bool {
	again := p.seen&bit != 0
	p.seen |= bit
	return !again
}
