package orchestrator

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"time"
)

// SignalHorizon is how long at least a signal is recognised as a duplicate after an orchestration has continued as new
// or made another attempt. The same holds for the streams of events that orchestrations exchange. Within an execution,
// duplicates are recognised without limit.
const SignalHorizon = 72 * time.Hour

// digest represents the id of a signal.
type digest [12]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:len(digest{})])
}

// appliedSignals holds the applied signals with their times, in microseconds.
type appliedSignals map[digest]int64

// appliedHour holds the concatenated digests of the signals that were applied within one hour of Unix time.
type appliedHour struct {
	Hour    int64  `json:"hour"`
	Digests []byte `json:"digests"`
}

const microsAnHour = int64(time.Hour / time.Microsecond)

// receivedSignals records the signals that an orchestration has received, to recognise duplicates.
type receivedSignals struct {
	applied appliedSignals
	senders senders
	last    string // id of the signal that was applied last
}

// record records the signal of an event.
func (m *receivedSignals) record(e event) {
	if e.Inherited != nil {
		m.restore(e.Inherited, e.At)
	}
	s := e.Signal
	if s == nil || s.ID == "" || e.Kind == executionStarted { // the id in a start is a request id, not a signal's
		return
	}
	m.add(digestOf(s.ID), e.At)
	m.last = s.ID
	if s.Stream != "" && !s.Overtakes {
		m.advanceStream(s.Stream, sender{s.Sequence, e.At})
	}
}

// contains reports whether a signal has been applied.
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

// restore adopts the record of the previous execution, in the format of any version.
func (m *receivedSignals) restore(in *inheritance, at int64) {
	for _, id := range in.Signals {
		m.add(digestOf(id), at) // older versions did not store the time
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

// saveTo stores the part of the record within the horizon in to.
func (m *receivedSignals) saveTo(to *inheritance, now int64) {
	from := now - SignalHorizon.Microseconds()
	to.Applied, to.Senders = m.applied.since(from), m.senders.since(from)
	if m.last != "" {
		to.Signals = []string{m.last}
	}
}

// since returns the signals applied from a time on, by hour.
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

// sender is the state of a stream of events from another orchestration: the sequence number and the arrival of the
// last event, in microseconds.
type sender struct {
	Sequence int   `json:"sequence"`
	At       int64 `json:"at"`
}

// senders holds the streams of received events by name.
type senders map[string]sender

// since returns the streams of which an event has arrived since a time.
func (s senders) since(from int64) senders {
	recent := maps.Clone(s)
	maps.DeleteFunc(recent, func(_ string, one sender) bool { return one.At < from })
	return recent
}
