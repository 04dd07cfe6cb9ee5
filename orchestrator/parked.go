package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

// The index of parked orchestrations has one partition. Its row keys begin with the due time, so that overdue ones come
// first.
const (
	indexPartition = "parked"
	columnID       = "Id"
	columnDue      = "DueAtUtc"
	columnWithin   = "Within"
	columnSince    = "SinceUtc"
	columnTries    = "Tries"
	columnTask     = "TaskId"
	columnChild    = "ChildId"
	columnMessage  = "MessageAtUtc"
	// indexSlice bounds the operations of one transaction on the index.
	indexSlice = 50
	// wakeTries bounds how often an orchestration is woken for one due time, because it may no longer wait for that
	// time.
	wakeTries = 8
)

// parkedEntry is an entry of the index: why and when the sweeper checks an orchestration.
type parkedEntry struct {
	id  string
	due time.Time
	// within is set if the orchestration waits for another process of this program, or was to be continued by another
	// invocation. Otherwise it waits for a time.
	within bool
	// since is the time that the orchestration waits for, and tries is how often it was woken because that time had
	// passed.
	since time.Time
	tries int
	// task is the human task that was about to be completed. child is the sub-orchestration that had to report its end
	// to the orchestration.
	task            string
	child           string
	childUnreported bool // the orchestration still waits for child
	// message is when the timer message that wakes the orchestration becomes visible; zero for none.
	message time.Time
}

func (p parkedEntry) row() tables.Entity {
	e := tables.Entity{Key: tables.Key{Partition: indexPartition, Row: indexRow(p.id+p.child, p.due)},
		Properties: map[string]any{columnID: p.id, columnDue: p.due, columnWithin: p.within, columnSince: p.since, columnTries: int64(p.tries), columnTask: p.task, columnChild: p.child}}
	if !p.message.IsZero() {
		e.Properties[columnMessage] = p.message
	}
	return e
}

func parkedEntryOf(e tables.Entity) parkedEntry {
	return parkedEntry{id: e.String(columnID), due: e.Time(columnDue), within: e.Bool(columnWithin), since: e.Time(columnSince), tries: int(e.Int(columnTries)), task: e.String(columnTask), child: e.String(columnChild)}
}

// nextEntry returns the entry with which the sweeper checks an orchestration again that it has just woken; ok is false
// if no check is needed. A stalled orchestration is woken in every sweep.
func (r *Runtime) nextEntry(p parkedEntry, s Summary) (parkedEntry, bool) {
	now := r.config.Now()
	switch {
	case s.Status == Stalled:
		return r.recheckSoon(p.id), true
	case p.within:
		return r.recheckLater(p.id), true
	case p.task != "":
		return p, false
	}
	p.tries++
	p.due = now.Add(r.config.LateAfter << p.tries).Truncate(r.config.LateAfter)
	return p, p.tries < wakeTries
}

// recheckLater returns the entry of an orchestration that depends on other processes. Its due time is rounded, so that
// all processes that park the orchestration write the same row, and rows do not multiply.
func (r *Runtime) recheckLater(id string) parkedEntry {
	step := r.config.LostAfter / 4
	due := r.config.Now().Add(r.config.LostAfter + step).Truncate(step)
	return parkedEntry{id: id, due: due, since: due, within: true}
}

// recheckSoon returns the entry of a stalled orchestration, for the next sweep. Its due time is rounded like that of
// recheckLater, because both the sweeper and the driver that it wakes write the entry.
func (r *Runtime) recheckSoon(id string) parkedEntry {
	due := r.config.Now().Truncate(r.config.LateAfter)
	return parkedEntry{id: id, due: due, since: due}
}

func indexRow(id string, due time.Time) string {
	return fmt.Sprintf("%016x-%s", due.UnixMicro(), hashOf([]byte(id))[:32])
}

// addParked adds entries to the index, so that the sweeper finds the orchestration if the message that wakes it is
// lost. Obsolete rows are deleted in the same transaction.
func (r *Runtime) addParked(ctx context.Context, entries ...parkedEntry) error {
	if len(entries) == 0 {
		return nil
	}
	var rows []tables.Op
	written := map[string]bool{}
	for _, p := range entries {
		row := p.row()
		if !written[row.Row] { // one entry per due time is enough
			rows = append(rows, tables.Upsert(row))
		}
		written[row.Row] = true
	}
	ops := append(rows[:len(rows):len(rows)], r.obsoleteOps(written)...)
	err := r.config.Tables.Apply(ctx, r.config.IndexTable, ops...)
	if err != nil && len(ops) > len(rows) && !errors.Is(err, tables.ErrThrottled) {
		err = r.config.Tables.Apply(ctx, r.config.IndexTable, rows...) // without the deletions, because another process may have deleted one of those rows
	}
	if err != nil {
		return fmt.Errorf("park orchestration %s: %w", entries[0].id, err)
	}
	return nil
}

// markObsolete records that a row of the index is obsolete. The next addParked deletes it, or else the sweeper does.
func (r *Runtime) markObsolete(id string, due time.Time) {
	if due.After(r.config.Now()) {
		return // the message came early, so the row is still needed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.obsoleteParked) < indexSlice {
		r.obsoleteParked = append(r.obsoleteParked, indexRow(id, due))
	}
}

// obsoleteOps returns the deletions of obsolete rows, without the rows that are being written.
func (r *Runtime) obsoleteOps(seen map[string]bool) []tables.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ops []tables.Op
	for _, row := range r.obsoleteParked {
		if !seen[row] {
			ops = append(ops, tables.Delete(tables.Key{Partition: indexPartition, Row: row}, ""))
		}
		seen[row] = true
	}
	r.obsoleteParked = nil
	return ops
}

// Sweep wakes parked orchestrations that are overdue because a message was lost, up to limit, and returns how many.
// One sweep at a time is enough for all processes; several do no harm. Unnecessary entries are removed. Damaged
// orchestrations are skipped until they can be read again. An entry that cannot be processed remains without blocking
// the others; its error is part of the result.
func (r *Runtime) Sweep(ctx context.Context, limit int) (int, error) {
	if r.config.Queues == nil {
		return 0, fmt.Errorf("sweep: %w", ErrNoSignals)
	}
	damage := r.reviewDamage(ctx)
	woken, err := r.sweep(ctx, limit, r.config.LateAfter)
	return woken, errors.Join(damage, err)
}

// sweep wakes the orchestrations that are overdue by more than late.
func (r *Runtime) sweep(ctx context.Context, limit int, late time.Duration) (int, error) {
	woken := map[string]bool{}
	var failed []error
	before := r.config.Now().Add(-late)
	q := tables.Query{Partition: indexPartition, To: fmt.Sprintf("%016x", before.UnixMicro()+1), Limit: min(limit, 1000)}
	for {
		page, err := r.config.Tables.Query(ctx, r.config.IndexTable, q)
		if err != nil {
			return len(woken), fmt.Errorf("sweep: %w", err)
		}
		var done []tables.Op
		for _, e := range page.Entities {
			err := r.checkParked(ctx, parkedEntryOf(e), late, woken)
			if err != nil && (ctx.Err() != nil || isStorageOutage(err)) {
				return len(woken), errors.Join(err, r.deleteParked(ctx, done))
			}
			if err != nil { // the entry stays for the next sweep
				failed = append(failed, fmt.Errorf("row %s: %w", e.Row, err))
				continue
			}
			done = append(done, tables.Delete(e.Key, ""))
		}
		if err := r.deleteParked(ctx, done); err != nil {
			return len(woken), err
		}
		if q.Continuation = page.Next; q.Continuation == "" || len(woken) >= limit {
			return len(woken), errors.Join(failed...)
		}
	}
}

// isStorageOutage reports whether an error of storage concerns all requests, not only one row.
func isStorageOutage(err error) bool {
	return errors.Is(err, tables.ErrThrottled) || errors.Is(err, tables.ErrOutcomeUnknown) || errors.Is(err, tables.ErrDenied) || errors.Is(err, tables.ErrNotFound)
}

// checkParked wakes the orchestration of an entry, unless a process has driven it since the due time or this sweep has
// woken it already. It adds the orchestration to woken. If the orchestration still has to be watched, checkParked
// writes a new entry before the caller deletes the old one.
func (r *Runtime) checkParked(ctx context.Context, p parkedEntry, late time.Duration, woken map[string]bool) error {
	s, state, err := r.statusState(ctx, p.id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("sweep: %w", err)
	}
	if p.task != "" {
		if err := r.showTask(ctx, tasks.Ref{Orchestration: p.id, ID: p.task}); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	now := r.config.Now()
	p.childUnreported = p.child != "" && state.waitsFor(p.child)
	switch {
	case err == nil && (s.Ended() || s.Status == Retrying) && s.Parent != "" && p.child == "":
		// Its caller, which makes its attempts, may not have learned of its end.
		return r.checkParked(ctx, parkedEntry{id: s.Parent, child: p.id, due: p.due, since: now}, late, woken)
	case err != nil:
		return r.FindDamage(ctx, p.id)
	case s.Ended():
		return nil
	case !s.overdue(p, now.Add(-late)):
		return r.keepParked(ctx, p, s)
	case s.Status == Retrying && s.UpdatedAt.After(now.Add(-r.config.LostAfter)):
		return r.addParked(ctx, r.recheckLater(p.id)) // the message that causes the next attempt can still come
	case p.within && !s.WaitingWithin && s.UpdatedAt.After(now.Add(-r.config.LostAfter)):
		return r.addParked(ctx, r.recheckLater(p.id)) // a process may be driving it; such a process commits a round from time to time
	}
	if damaged, err := r.isDamaged(ctx, p.id); damaged || err != nil {
		return err // reviewDamage wakes it when it can be read again
	}
	if next, ok := r.nextEntry(p, s); ok {
		if err := r.addParked(ctx, next); err != nil {
			return err
		}
	}
	if woken[p.id] {
		return nil
	}
	wake := Signal{SignalID: fmt.Sprintf("sweep:%s:%d", p.id, p.due.UnixMicro()), InstanceID: p.id, Type: InternalContinue, Payload: Payload{Lost: true}}
	if err := r.sendOnce(ctx, wake, 0); err != nil {
		return err
	}
	woken[p.id] = true
	r.count(func(c *Counts) { c.Woken++ })
	if s.Status == Stalled {
		r.config.Log.InfoContext(ctx, "an orchestration is stalled: it is woken, in case its code is fixed", "orchestrationId", p.id)
		return nil
	}
	r.config.Log.WarnContext(ctx, "the message that was to wake an orchestration is lost or late: it is woken", "orchestrationId", p.id, "due", p.due)
	return nil
}

// deleteParked deletes rows of the index. Another process may have deleted some of them already.
func (r *Runtime) deleteParked(ctx context.Context, deletions []tables.Op) error {
	for len(deletions) > 0 {
		n := min(len(deletions), indexSlice)
		err := r.config.Tables.Apply(ctx, r.config.IndexTable, deletions[:n]...)
		if errors.Is(err, tables.ErrNotFound) {
			err = nil
			for _, op := range deletions[:n] {
				if one := r.config.Tables.Apply(ctx, r.config.IndexTable, op); one != nil && !errors.Is(one, tables.ErrNotFound) {
					err = one
				}
			}
		}
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		deletions = deletions[n:]
	}
	return nil
}

// overdue reports whether the orchestration has to be woken. Either no process has driven it since its due time, or
// another due time has passed, or it waits for other processes and has to check that they are still working. Its
// signals since then may not come from all of them.
func (s Summary) overdue(p parkedEntry, late time.Time) bool {
	switch {
	case s.Ended():
		return false
	case s.Status == Pending, s.Status == Stalled, s.Status == Retrying, p.task != "", p.childUnreported:
		return true
	case s.Status == Suspended: // it waits for a resume, or for its timeout
		return !p.within && s.Busy && s.UpdatedAt.Before(p.since)
	case !s.WaitingUntil.IsZero() && s.WaitingUntil.Before(late):
		return true
	case p.child != "":
		return false
	case p.within:
		return s.WaitingWithin || s.Running
	default:
		return s.Busy && s.UpdatedAt.Before(p.since)
	}
}

// keepParked writes another entry for an orchestration that is not overdue but still active, because the process that
// drives it may have died before it wrote one.
func (r *Runtime) keepParked(ctx context.Context, p parkedEntry, s Summary) error {
	switch {
	case s.Status == Suspended:
		return nil
	case s.Running:
		return r.addParked(ctx, r.recheckLater(p.id))
	case s.WaitingUntil.IsZero() || s.WaitingUntil.Equal(p.due):
		return nil
	}
	row := parkedEntry{id: p.id, due: s.WaitingUntil, since: s.WaitingUntil}.row()
	err := r.config.Tables.Apply(ctx, r.config.IndexTable, tables.Insert(row)) // an existing entry holds more, so it is not replaced
	if err != nil && !errors.Is(err, tables.ErrExists) {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}
