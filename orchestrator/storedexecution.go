package orchestrator

import (
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/tables"
)

// storedExecution is one execution as its rounds record it.
type storedExecution struct {
	number     int
	rounds     []round
	numbers    []int // numbers of the rounds
	old        bool  // it is older than the base of the latest execution, so rows may be deleted
	incomplete bool  // it took over results that are deleted
	blobs      bool  // blobs hold some of its payloads or rounds
}

// missing returns the number of the first missing round, 0 if none is missing.
func (g storedExecution) missing() int {
	for i, n := range g.numbers {
		if n != i+1 {
			return i + 1
		}
	}
	return 0
}

// start returns the event with which the execution began.
func (g storedExecution) start() (event, bool) {
	if len(g.rounds) == 0 || len(g.rounds[0].Learned) == 0 || g.rounds[0].Learned[0].Kind != executionStarted {
		return event{}, false
	}
	return g.rounds[0].Learned[0], true
}

// forNextAttempt returns the state that the next attempt inherits: the external events, which its code receives again,
// and the records of suspension and of received signals. It also holds the streams of sent events as they were when
// this attempt began. So an event that the next attempt sends again is the same event at the same place of its stream.
func (g storedExecution) forNextAttempt() *inheritance {
	var h inheritance
	var m receivedSignals
	var early overtakers
	raise := func(e event, at int64) {
		if e.signal().Overtakes {
			early.put(e)
		} else {
			h.Unread = append(h.Unread, e)
		}
		h.Unread = append(h.Unread, early.follow(e.signal().Stream, &m, at)...)
	}
	for _, r := range g.rounds {
		for _, e := range r.Learned {
			m.record(e)
			if in := e.Inherited; in != nil {
				for _, u := range in.Unread {
					raise(u, e.At)
				}
				h.Suspended, h.Commanded, h.Sent = in.Suspended, in.Commanded, in.Sent
			}
			switch e.Kind {
			case eventRaised:
				raise(e, e.At)
			case overtakersReleased:
				if stream := e.signal().Stream; len(early[stream]) > 0 {
					h.Unread = append(h.Unread, early.take(stream, &m, e.At))
					h.Unread = append(h.Unread, early.follow(stream, &m, e.At)...)
				}
			case executionSuspended, executionResumed:
				h.Suspended, h.Commanded = e.Kind == executionSuspended, max(e.signal().Accepted, h.Commanded)
			}
		}
	}
	h.Unread = append(h.Unread, early.list()...)
	return h.with(m, g.lastEventAt())
}

// complete reports whether the execution has all data for a replay.
func (g storedExecution) complete() bool { return g.missing() == 0 && !g.incomplete }

// received returns the signals that the execution and those before it have applied.
func (g storedExecution) received() receivedSignals {
	var m receivedSignals
	for _, r := range g.rounds {
		for _, e := range r.Learned {
			m.record(e)
		}
	}
	return m
}

// lastEventAt returns the time of the latest event of the execution, in microseconds.
func (g storedExecution) lastEventAt() int64 {
	var last int64
	if n := len(g.rounds); n > 0 {
		for _, events := range [][]event{g.rounds[n-1].Learned, g.rounds[n-1].Decided} {
			for _, e := range events {
				last = max(last, e.At)
			}
		}
	}
	return last
}

// end returns the decision that ended the execution, nil before its end.
func (g storedExecution) end() *event {
	if len(g.rounds) == 0 {
		return nil
	}
	decided := g.rounds[len(g.rounds)-1].Decided
	if len(decided) == 0 {
		return nil
	}
	switch last := &decided[len(decided)-1]; last.Kind {
	case executionCompleted, executionFailed, executionContinued, executionStopped:
		return last
	default:
		return nil
	}
}

// active reports whether the execution has not ended, or is followed by another one by itself.
func (g storedExecution) active() bool {
	end := g.end()
	return end == nil || end.Kind == executionContinued || end.Retrying
}

// firstAttempt returns the number of the first of the consecutive attempts that end with this execution.
func (g storedExecution) firstAttempt() int {
	started, _ := g.start()
	return g.number - started.attempt(g.number) + 1
}

// stalled reports whether the execution is stalled, according to its rounds.
func (g storedExecution) stalled() bool {
	for _, r := range slices.Backward(g.rounds) {
		for _, e := range slices.Backward(r.Learned) {
			switch e.Kind {
			case executionStalled:
				return true
			case executionRecovered:
				return false
			}
		}
	}
	return false
}

// roundCount returns the number of all rounds of the executions, deleted ones included.
func roundCount(all []storedExecution) int {
	if len(all) == 0 {
		return 0
	}
	latest := all[len(all)-1]
	started, _ := latest.start()
	return started.start().Before + len(latest.rounds)
}

func decodeExecutions(rows []tables.Entity) ([]storedExecution, error) {
	var all []storedExecution
	var reader roundReader
	for _, e := range rows {
		execution, number, ok := parseRoundKey(e.Row)
		if !ok {
			return nil, fmt.Errorf("row %s: not the key of a round: %w", e.Row, ErrCorrupt)
		}
		if n := len(all); n == 0 || all[n-1].number != execution {
			all = append(all, storedExecution{number: execution})
		}
		g := &all[len(all)-1]
		r, err := reader.decode(e)
		if err != nil {
			return nil, err
		}
		g.rounds, g.numbers = append(g.rounds, r), append(g.numbers, number)
		g.blobs = g.blobs || e.String(columnBlob) != "" || r.names()
	}
	if len(all) == 0 {
		return nil, nil
	}
	latest := all[len(all)-1]
	_, ok := latest.start()
	if n := latest.missing(); n > 0 || !ok {
		return nil, fmt.Errorf("execution %d does not begin with a start, round %d is missing: %w", latest.number, max(n, 1), ErrCorrupt)
	}
	oldest := latest.firstAttempt() - 1
	for i := range all {
		g := &all[i]
		g.old = g.number < oldest
		if n := g.missing(); n > 0 && !g.old {
			return nil, fmt.Errorf("round %d of execution %d is missing: %w", n, g.number, ErrCorrupt)
		}
	}
	return all, nil
}
