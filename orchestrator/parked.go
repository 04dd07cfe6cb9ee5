package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

// The index has one partition; its rows are named by when their orchestrations are due, so that those which are overdue
// come first.
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
	// indexSlice bounds what one transaction of the index does.
	indexSlice = 50
	// wakeTries bounds how often an orchestration is woken for one time that has passed: it may not wait for it any more.
	wakeTries = 8
)

// parkedEntry is why a parked orchestration is in the index.
type parkedEntry struct {
	id  string
	due time.Time
	// within says that it waits for others of this program, or that another invocation was to go on with it; otherwise, it
	// waits for a time.
	within bool
	// since is the time that it waits for, and tries how often it was woken because that had passed.
	since time.Time
	tries int
	// task is the human task that was about to be completed, child the sub-orchestration that has ended, of which the
	// orchestration was to hear.
	task            string
	child           string
	childUnreported bool // of that it still waits to hear
	// message is when the message becomes visible that wakes it; zero for none.
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

// nextEntry is when the sweeper looks again at what it has just woken; false when it does not. What is stalled it wakes in every
// sweep.
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

// recheckLater is the parking of an orchestration that depends on others. Its times are coarse, so that whoever parks it
// writes the same row, and rows do not multiply.
func (r *Runtime) recheckLater(id string) parkedEntry {
	step := r.config.LostAfter / 4
	due := r.config.Now().Add(r.config.LostAfter + step).Truncate(step)
	return parkedEntry{id: id, due: due, since: due, within: true}
}

// recheckSoon is the parking of what is stalled, for the next sweep. Its times are coarse, as those of lookAfter: it is written by
// the sweeper, and by the driver that the sweeper wakes.
func (r *Runtime) recheckSoon(id string) parkedEntry {
	due := r.config.Now().Truncate(r.config.LateAfter)
	return parkedEntry{id: id, due: due, since: due}
}

func indexRow(id string, due time.Time) string {
	return fmt.Sprintf("%016x-%s", due.UnixMicro(), hashOf([]byte(id))[:32])
}

// addParked puts a parked orchestration into the index, for the case that the message is lost that is to wake it. Rows
// that say nothing any more are deleted on the way.
func (r *Runtime) addParked(ctx context.Context, entries ...parkedEntry) error {
	if len(entries) == 0 {
		return nil
	}
	var rows []tables.Op
	written := map[string]bool{}
	for _, p := range entries {
		row := p.row()
		if !written[row.Row] { // for one time, the first will do: it is looked at again
			rows = append(rows, tables.Upsert(row))
		}
		written[row.Row] = true
	}
	ops := append(rows[:len(rows):len(rows)], r.obsoleteOps(written)...)
	err := r.config.Tables.Apply(ctx, r.config.IndexTable, ops...)
	if err != nil && len(ops) > len(rows) && !errors.Is(err, tables.ErrThrottled) {
		err = r.config.Tables.Apply(ctx, r.config.IndexTable, rows...) // another process has deleted one of the others
	}
	if err != nil {
		return fmt.Errorf("park orchestration %s: %w", entries[0].id, err)
	}
	return nil
}

// markObsolete notes that a row of the index says nothing any more. The next that is written takes it away, or the sweeper.
func (r *Runtime) markObsolete(id string, due time.Time) {
	if due.After(r.config.Now()) {
		return // it came early: the time is still to come
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.obsoleteParked) < indexSlice {
		r.obsoleteParked = append(r.obsoleteParked, indexRow(id, due))
	}
}

// obsoleteOps are the deletions of the rows that say nothing, but not of those that are written with them.
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

// Sweep finds parked orchestrations that are overdue because a message was lost, and wakes them, up to limit; it gives
// how many. One call at a time is enough for all processes; several do no harm. What it finds for nothing it removes. What is
// damaged it leaves alone until it can be read again. A row that it cannot look at stays, holds up no other, and is in the
// error.
func (r *Runtime) Sweep(ctx context.Context, limit int) (int, error) {
	if r.config.Queues == nil {
		return 0, fmt.Errorf("sweep: %w", ErrNoSignals)
	}
	woken := 0
	failed := []error{r.reviewDamage(ctx)}
	before := r.config.Now().Add(-r.config.LateAfter)
	q := tables.Query{Partition: indexPartition, To: fmt.Sprintf("%016x", before.UnixMicro()+1), Limit: min(limit, 1000)}
	for {
		page, err := r.config.Tables.Query(ctx, r.config.IndexTable, q)
		if err != nil {
			return woken, fmt.Errorf("sweep: %w", err)
		}
		var done []tables.Op
		for _, e := range page.Entities {
			late, err := r.checkParked(ctx, parkedEntryOf(e))
			if err != nil && (ctx.Err() != nil || isStorageOutage(err)) {
				return woken, errors.Join(err, r.deleteParked(ctx, done))
			}
			if err != nil { // it stays for the next sweep, and holds nobody up
				failed = append(failed, fmt.Errorf("row %s: %w", e.Row, err))
				continue
			}
			if late {
				woken++
			}
			done = append(done, tables.Delete(e.Key, ""))
		}
		if err := r.deleteParked(ctx, done); err != nil {
			return woken, err
		}
		if q.Continuation = page.Next; q.Continuation == "" || woken >= limit {
			return woken, errors.Join(failed...)
		}
	}
}

// isStorageOutage says that an error of storage is about all that is asked of it, not about one row.
func isStorageOutage(err error) bool {
	return errors.Is(err, tables.ErrThrottled) || errors.Is(err, tables.ErrOutcomeUnknown) || errors.Is(err, tables.ErrDenied) || errors.Is(err, tables.ErrNotFound)
}

// checkParked wakes an orchestration if nobody has since it was due. It has a row for later then, before the one goes that says so.
func (r *Runtime) checkParked(ctx context.Context, p parkedEntry) (late bool, err error) {
	s, state, err := r.statusState(ctx, p.id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, fmt.Errorf("sweep: %w", err)
	}
	if p.task != "" {
		if err := r.showTask(ctx, tasks.Ref{Orchestration: p.id, ID: p.task}); err != nil {
			return false, fmt.Errorf("sweep: %w", err)
		}
	}
	now := r.config.Now()
	p.childUnreported = p.child != "" && state.waitsFor(p.child)
	switch {
	case err == nil && s.Ended() && s.Parent != "" && p.child == "":
		return r.checkParked(ctx, parkedEntry{id: s.Parent, child: p.id, due: p.due, since: now}) // it may not have been told
	case err != nil:
		return false, r.FindDamage(ctx, p.id)
	case s.Ended():
		return false, nil
	case !s.overdue(p, now.Add(-r.config.LateAfter)):
		return false, r.keepParked(ctx, p, s)
	case s.Status == Retrying && s.UpdatedAt.After(now.Add(-r.config.LostAfter)):
		return false, r.addParked(ctx, r.recheckLater(p.id)) // the message comes that brings the next attempt
	case p.within && !s.WaitingWithin && s.UpdatedAt.After(now.Add(-r.config.LostAfter)):
		return false, r.addParked(ctx, r.recheckLater(p.id)) // somebody may be at it: who is commits something now and then
	}
	if damaged, err := r.isDamaged(ctx, p.id); damaged || err != nil {
		return false, err // whoever mends it wakes it: see review
	}
	if next, ok := r.nextEntry(p, s); ok {
		if err := r.addParked(ctx, next); err != nil {
			return false, err
		}
	}
	wake := Signal{SignalID: fmt.Sprintf("sweep:%s:%d", p.id, p.due.UnixMicro()), InstanceID: p.id, Type: InternalContinue, Payload: Payload{Lost: true}}
	if err := r.send(ctx, wake, 0); err != nil {
		return false, err
	}
	r.count(func(c *Counts) { c.Woken++ })
	if s.Status == Stalled {
		r.config.Log.Info("an orchestration is stalled: it is tried whether its code is mended", "orchestration", p.id)
		return true, nil
	}
	r.config.Log.Warn("the message that was to wake an orchestration is lost or late: it is woken", "orchestration", p.id, "due", p.due)
	return true, nil
}

// deleteParked deletes rows of the index. Somebody may have deleted them already.
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

// overdue says that nobody has driven the orchestration since its time, that another time has passed, or that it waits
// for others and has to look whether they are still there: whatever it heard meanwhile need not have come from all of them.
func (s Summary) overdue(p parkedEntry, late time.Time) bool {
	switch {
	case s.Ended():
		return false
	case s.Status == Pending, s.Status == Stalled, s.Status == Retrying, p.task != "", p.childUnreported:
		return true
	case s.Status == Suspended: // it waits to be resumed, or for its own time to be over
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

// keepParked leaves another row for an orchestration that is not overdue, but goes on: whoever goes on with it may have died
// before it wrote one.
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
	err := r.config.Tables.Apply(ctx, r.config.IndexTable, tables.Insert(row)) // one that is there knows more
	if err != nil && !errors.Is(err, tables.ErrExists) {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}
