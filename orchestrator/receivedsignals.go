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

// appliedSignals are signals that have been applied, and when, in microseconds.
type appliedSignals map[digest]int64

// appliedHour are the digests of signals that were applied in one hour of Unix time, one behind the other.
type appliedHour struct {
	Hour    int64  `json:"hour"`
	Digests []byte `json:"digests"`
}

const microsAnHour = int64(time.Hour / time.Microsecond)

// receivedSignals is what an orchestration knows of those that it hears from.
type receivedSignals struct {
	applied appliedSignals
	senders senders
	last    string // signal that was applied
}

// record takes note of an event of the rounds.
func (m *receivedSignals) record(e event) {
	if e.Inherited != nil {
		m.restore(e.Inherited, e.At)
	}
	if e.Signal == "" || e.Kind == executionStarted { // whose request id is no signal's
		return
	}
	m.add(digestOf(e.Signal), e.At)
	m.last = e.Signal
	if e.Stream != "" {
		m.advanceStream(e.Stream, sender{e.Sequence, e.At})
	}
}

// contains says whether a signal has been applied.
func (m *receivedSignals) contains(signal string) bool {
	if signal == "" || len(m.applied) == 0 {
		return false
	}
	_, ok := m.applied[digestOf(signal)]
	return ok
}

func (m *receivedSignals) add(d digest, at int64) {
	if m.applied == nil {
		m.applied = appliedSignals{}
	}
	m.applied[d] = max(m.applied[d], at)
}

func (m *receivedSignals) advanceStream(stream string, to sender) {
	if m.senders == nil {
		m.senders = senders{}
	}
	known := m.senders[stream]
	m.senders[stream] = sender{max(known.Sequence, to.Sequence), max(known.At, to.At)}
}

// restore takes over what an execution was left, in whatever way it was written.
func (m *receivedSignals) restore(in *inheritance, at int64) {
	for _, id := range in.Signals {
		m.add(digestOf(id), at) // older versions do not say when
		m.last = id
	}
	for _, hour := range in.Applied {
		for d := range slices.Chunk(hour.Digests, len(digest{})) {
			if len(d) == len(digest{}) {
				m.add(digest(d), hour.Hour*microsAnHour)
			}
		}
	}
	for stream, sequence := range in.Streams {
		m.advanceStream(stream, sender{sequence, at})
	}
	for stream, to := range in.Senders {
		m.advanceStream(stream, to)
	}
}

// saveTo hands on what is not older than the horizon.
func (m *receivedSignals) saveTo(to *inheritance, now int64) {
	from := now - SignalHorizon.Microseconds()
	to.Applied, to.Senders = m.applied.since(from), m.senders.since(from)
	if m.last != "" {
		to.Signals = []string{m.last}
	}
}

// since gives what was applied from a time on, by the hour.
func (h appliedSignals) since(from int64) []appliedHour {
	byHour := map[int64][]digest{}
	for d, at := range h {
		if hour := at / microsAnHour; hour >= from/microsAnHour {
			byHour[hour] = append(byHour[hour], d)
		}
	}
	var hours []appliedHour
	for hour, digests := range byHour {
		slices.SortFunc(digests, func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
		one := appliedHour{Hour: hour}
		for _, d := range digests {
			one.Digests = append(one.Digests, d[:]...)
		}
		hours = append(hours, one)
	}
	slices.SortFunc(hours, func(a, b appliedHour) int { return cmp.Compare(a.Hour, b.Hour) })
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
