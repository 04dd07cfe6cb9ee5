package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// entriesOf gives the history entries of one execution: its operations, and the run as a whole where no operation stands
// for it. Results that the execution took over from an earlier one are in the history already. All times come from the
// rounds, so the entries of an execution are always the same.
func entriesOf(d Definition, m Message, o orchestrator.Outcome) []Entry {
	entries := operationsOf(d, m, o)
	failed := slices.ContainsFunc(entries, func(e Entry) bool { return e.Status == StatusFailed })
	if len(entries) == 0 || (o.Failure != nil && !failed) {
		entries = append(entries, runEntry(d, m, o))
	}
	last := latest(entries)
	last.RunStatus = StatusSucceeded
	if o.Failure != nil {
		last.RunStatus = StatusFailed
	}
	return entries
}

// operationsOf gives the entries of the operations that an execution has done so far, none of which says how it ended.
func operationsOf(d Definition, m Message, o orchestrator.Outcome) []Entry {
	var entries []Entry
	for _, c := range o.Calls {
		if c.Reused || c.EndedAt.IsZero() || !d.isOperation(c) {
			continue
		}
		e := Entry{Engine: d.Name, InstanceID: m.InstanceID, Operation: d.operationName(c.Name), Status: StatusSucceeded,
			DurationMs: wholeMillis(c.ScheduledAt, c.EndedAt), Input: c.Input, Output: c.Output,
			CreatedAtUtc: c.EndedAt, CorrelationID: m.CorrelationID}
		if c.Failure != nil {
			e.Status, e.Error = StatusFailed, c.Failure.Message
		}
		entries = append(entries, e)
	}
	return entries
}

// runEntry is the entry of a run whose operations do not tell how it ended.
func runEntry(d Definition, m Message, o orchestrator.Outcome) Entry {
	e := Entry{Engine: d.Name, InstanceID: m.InstanceID, Operation: d.operationOf(m), Status: StatusSucceeded,
		DurationMs: wholeMillis(o.StartedAt, o.EndedAt), Input: m.inputOrBlob(), Output: o.Output,
		CreatedAtUtc: o.EndedAt, CorrelationID: m.CorrelationID}
	if o.Failure != nil {
		e.Status, e.Error = StatusFailed, o.Failure.Message
	}
	return e
}

// brokenEntry is the entry of an attempt that failed outside of its orchestration.
func brokenEntry(d Definition, m Message, cause error, began, ended time.Time) Entry {
	return Entry{Engine: d.Name, InstanceID: m.InstanceID, Operation: d.operationOf(m), Status: StatusFailed, RunStatus: StatusFailed,
		DurationMs: wholeMillis(began, ended), Input: m.inputOrBlob(), Error: cause.Error(),
		CreatedAtUtc: ended.Truncate(time.Microsecond), CorrelationID: m.CorrelationID}
}

// wholeMillis rounds: the times of events are a few microseconds apart that did not pass.
func wholeMillis(from, to time.Time) int64 {
	return to.Sub(from).Round(time.Millisecond).Milliseconds()
}

func latest(entries []Entry) *Entry {
	last := &entries[0]
	for i := range entries {
		if entries[i].CreatedAtUtc.After(last.CreatedAtUtc) {
			last = &entries[i]
		}
	}
	return last
}

// recordedRun is what the history tells about a correlation id.
type recordedRun struct{ entries []Entry }

// succeeded says that the whole run succeeded; an operation of a failed run does not count.
func (p recordedRun) succeeded() bool {
	for _, e := range p.entries {
		if e.RunStatus == StatusSucceeded {
			return true
		}
	}
	return false
}

// hasEnd says that the history holds how a failed execution ended, of which these are the entries. An attempt that broke
// while it ran has left an entry, too, which says nothing about its end.
func (p recordedRun) hasEnd(execution []Entry) bool {
	last := latest(execution)
	for _, e := range p.entries {
		if e.RunStatus == StatusFailed && e.Operation == last.Operation && e.CreatedAtUtc.Equal(last.CreatedAtUtc) {
			return true
		}
	}
	return false
}

// missing are those of the entries of an execution that the history does not hold, or holds without how the run ended.
func (p recordedRun) missing(execution []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(execution), func(e Entry) bool {
		return slices.ContainsFunc(p.entries, func(k Entry) bool {
			return k.Operation == e.Operation && k.CreatedAtUtc.Equal(e.CreatedAtUtc) && (e.RunStatus == "" || e.RunStatus == k.RunStatus)
		})
	})
}

// failures gives when attempts failed first and last, and the last error; zero and nil when none left word.
func (p recordedRun) failures() (first, last time.Time, err error) {
	for _, e := range p.entries {
		if e.RunStatus != StatusFailed {
			continue
		}
		if first.IsZero() {
			first = e.CreatedAtUtc
		}
		last, err = e.CreatedAtUtc, errors.New(e.Error)
	}
	return first, last, err
}
