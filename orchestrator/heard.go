package orchestrator

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"time"
)

// SignalHorizon is for how long at least an orchestration that continues as new, or makes another attempt, knows a signal
// that it has applied, and how far it is with those that it exchanges events with: a signal that comes again within that
// time is dropped. An execution knows its own signals as long as it lasts.
const SignalHorizon = 72 * time.Hour

// digest stands for the id of a signal.
type digest [12]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:len(digest{})])
}

// heard are signals that have been applied, and when, in microseconds.
type heard map[digest]int64

// heardHour are the digests of signals that were applied in one hour of Unix time, one behind the other.
type heardHour struct {
	Hour    int64  `json:"hour"`
	Digests []byte `json:"digests"`
}

const microsAnHour = int64(time.Hour / time.Microsecond)

// memory is what an orchestration knows of those that it hears from.
type memory struct {
	heard   heard
	senders senders
	last    string // signal that was applied
}

// hear takes note of an event of the rounds.
func (m *memory) hear(e event) {
	if e.Inherited != nil {
		m.inherit(e.Inherited, e.At)
	}
	if e.Signal == "" || e.Kind == executionStarted { // whose request id is no signal's
		return
	}
	m.note(digestOf(e.Signal), e.At)
	m.last = e.Signal
	if e.Stream != "" {
		m.follow(e.Stream, sender{e.Sequence, e.At})
	}
}

// knows says whether a signal has been applied.
func (m *memory) knows(signal string) bool {
	if signal == "" || len(m.heard) == 0 {
		return false
	}
	_, ok := m.heard[digestOf(signal)]
	return ok
}

func (m *memory) note(d digest, at int64) {
	if m.heard == nil {
		m.heard = heard{}
	}
	m.heard[d] = max(m.heard[d], at)
}

func (m *memory) follow(stream string, to sender) {
	if m.senders == nil {
		m.senders = senders{}
	}
	known := m.senders[stream]
	m.senders[stream] = sender{max(known.Sequence, to.Sequence), max(known.At, to.At)}
}

// inherit takes over what an execution was left, in whatever way it was written.
func (m *memory) inherit(in *inheritance, at int64) {
	for _, id := range in.Signals {
		m.note(digestOf(id), at) // older versions do not say when
		m.last = id
	}
	for _, hour := range in.Heard {
		for d := range slices.Chunk(hour.Digests, len(digest{})) {
			if len(d) == len(digest{}) {
				m.note(digest(d), hour.Hour*microsAnHour)
			}
		}
	}
	for stream, sequence := range in.Streams {
		m.follow(stream, sender{sequence, at})
	}
	for stream, to := range in.Senders {
		m.follow(stream, to)
	}
}

// leave hands on what is not older than the horizon.
func (m *memory) leave(to *inheritance, now int64) {
	from := now - SignalHorizon.Microseconds()
	to.Heard, to.Senders = m.heard.since(from), m.senders.since(from)
	if m.last != "" {
		to.Signals = []string{m.last}
	}
}

// since gives what was applied from a time on, by the hour.
func (h heard) since(from int64) []heardHour {
	byHour := map[int64][]digest{}
	for d, at := range h {
		if hour := at / microsAnHour; hour >= from/microsAnHour {
			byHour[hour] = append(byHour[hour], d)
		}
	}
	var hours []heardHour
	for hour, digests := range byHour {
		slices.SortFunc(digests, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
		one := heardHour{Hour: hour}
		for _, d := range digests {
			one.Digests = append(one.Digests, d[:]...)
		}
		hours = append(hours, one)
	}
	slices.SortFunc(hours, func(a, b heardHour) int { return cmp.Compare(a.Hour, b.Hour) })
	return hours
}

// sender is how far an orchestration is with the events of one other: the sequence of the last, and when it came, in
// microseconds.
type sender struct {
	Sequence int   `json:"sequence"`
	At       int64 `json:"at"`
}

// senders are those of the streams that events came from.
type senders map[string]sender

// since gives those that something came from since a time.
func (s senders) since(from int64) senders {
	recent := maps.Clone(s)
	maps.DeleteFunc(recent, func(_ string, one sender) bool { return one.At < from })
	return recent
}
