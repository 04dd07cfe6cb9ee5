package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// entriesOf returns the history entries of one execution: its operations, and an entry for the run if they do not
// show its end. A failed run has a failed entry of its message's operation, regardless of other failures and undos.
// Adapted messages name no operation, so any failed entry is enough for them. Results that the execution took over
// from an earlier one are in the history already. All times come from the rounds, so the entries of an execution are
// always the same.
func entriesOf(d Definition, m Message, o orchestrator.Outcome) []Entry {
	entries := operationsOf(d, m, o)
	asked := d.operationOf(m)
	failed := slices.ContainsFunc(entries, func(e Entry) bool { return e.Status == StatusFailed && (e.Operation == asked || d.Adapt != nil) })
	if len(entries) == 0 || (o.Failure != nil && !failed) {
		entries = append(entries, runEntry(d, m, o))
	}
	last := latest(entries)
	last.RunStatus, last.Work = StatusSucceeded, d.work(m)
	if o.Failure != nil {
		last.RunStatus = StatusFailed
	}
	return entries
}

// operationsOf returns the entries of the operations that an execution has done so far, without a run status.
func operationsOf(d Definition, m Message, o orchestrator.Outcome) []Entry {
	var entries []Entry
	for _, c := range o.Calls {
		if c.Reused || c.EndedAt.IsZero() || !d.isOperation(c) {
			continue
		}
		e := Entry{Engine: d.Name, InstanceID: m.InstanceID, TenantID: tenantOf(m, o), Operation: d.operationName(c.Name), Status: StatusSucceeded,
			DurationMs: wholeMillis(c.ScheduledAt, c.EndedAt), Input: c.Input, Output: c.Output,
			CreatedAtUtc: c.EndedAt, CorrelationID: m.CorrelationID}
		if c.Failure != nil {
			e.Status, e.Error = StatusFailed, c.Failure.Message
		}
		entries = append(entries, e)
	}
	return entries
}

// runEntry returns the entry of a run whose operations do not show its end.
func runEntry(d Definition, m Message, o orchestrator.Outcome) Entry {
	e := Entry{Engine: d.Name, InstanceID: m.InstanceID, TenantID: tenantOf(m, o), Operation: d.operationOf(m), Status: StatusSucceeded,
		DurationMs: wholeMillis(o.StartedAt, o.EndedAt), Input: m.inputOrBlob(), Output: o.Output,
		CreatedAtUtc: o.EndedAt, CorrelationID: m.CorrelationID}
	if o.Failure != nil {
		e.Status, e.Error = StatusFailed, o.Failure.Message
	}
	return e
}

// brokenEntry returns the entry of an attempt that failed outside of its orchestration.
func brokenEntry(d Definition, m Message, cause error, began, ended time.Time) Entry {
	return Entry{Engine: d.Name, InstanceID: m.InstanceID, TenantID: m.TenantID, Operation: d.operationOf(m), Status: StatusFailed, RunStatus: StatusFailed,
		DurationMs: wholeMillis(began, ended), Input: m.inputOrBlob(), Error: cause.Error(),
		CreatedAtUtc: ended.Truncate(time.Microsecond), CorrelationID: m.CorrelationID, Work: d.work(m)}
}

// tenantOf returns the tenant of an execution; an old execution may not have recorded that of its message.
func tenantOf(m Message, o orchestrator.Outcome) string { return cmp.Or(o.TenantID, m.TenantID) }

// wholeMillis rounds to milliseconds, because artificial microseconds keep the times of events distinct.
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

// recordedRun is the history of the work under a correlation id.
type recordedRun struct{ entries []Entry }

// succeeded reports whether the whole run succeeded. A succeeded operation of a failed run does not count.
func (p recordedRun) succeeded() bool {
	for _, e := range p.entries {
		if e.RunStatus == StatusSucceeded {
			return true
		}
	}
	return false
}

// hasEnd reports whether the history holds the end of a failed execution with these entries. The entry of an attempt
// that failed outside of its orchestration does not count as that end.
func (p recordedRun) hasEnd(execution []Entry) bool {
	last := latest(execution)
	for _, e := range p.entries {
		if e.RunStatus == StatusFailed && e.Operation == last.Operation && e.CreatedAtUtc.Equal(last.CreatedAtUtc) {
			return true
		}
	}
	return false
}

// missing returns those entries of an execution that the history does not hold, or holds without the run's status.
func (p recordedRun) missing(execution []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(execution), func(e Entry) bool {
		return slices.ContainsFunc(p.entries, func(k Entry) bool {
			return k.Operation == e.Operation && k.CreatedAtUtc.Equal(e.CreatedAtUtc) && (e.RunStatus == "" || e.RunStatus == k.RunStatus)
		})
	})
}

// failures returns when the first and the last attempt failed, and the last error; zero and nil when none is recorded.
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

// recordTries bounds the history reads of record after concurrent writes.
const recordTries = 3

// record writes the history of a run, including earlier failed executions that are missing there.
func (a *attempt) record(ctx context.Context, out orchestrator.Outcome) (err error) {
	for try := 1; ; try++ {
		err = a.tryRecord(ctx, out)
		changed := errors.Is(err, tables.ErrExists) || errors.Is(err, tables.ErrPrecondition) || errors.Is(err, tables.ErrNotFound)
		if !changed || try == recordTries {
			return err
		}
		if err = a.readHistory(ctx); err != nil {
			return err
		}
	}
}

// tryRecord is record without concurrent writes of the same entries. A delayed earlier write of its own counts as
// concurrent: it must not overwrite later outcomes of the run.
func (a *attempt) tryRecord(ctx context.Context, out orchestrator.Outcome) error {
	all := entriesOf(a.def, a.message, out)
	by := cmp.Or(successOf(all), successOf(a.history.entries))
	for _, earlier := range out.Earlier {
		if err := a.config.History.recordFailed(ctx, supersededBy(by, a.history.missing(entriesOf(a.def, a.message, earlier))), a.history.entries); err != nil {
			return err
		}
	}
	entries := supersededBy(by, a.history.missing(all))
	var err error
	if by == "" {
		err = a.config.History.recordFailed(ctx, entries, a.history.entries)
	} else {
		err = a.config.History.recordSuccess(ctx, by, entries, a.history.entries)
	}
	if err != nil {
		return err
	}
	a.history.entries = append(a.history.entries, entries...)
	return nil
}

// supersede marks unmarked failures before the recorded success of the run.
func (a *attempt) supersede(ctx context.Context) error {
	return a.config.History.recordSuccess(ctx, successOf(a.history.entries), nil, a.history.entries)
}
