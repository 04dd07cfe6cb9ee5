package schedule

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/tables"
)

// look holds what there is to send against what storage knows, and tells which schedules have all of their items in it. The error
// may come with entries: of what could be listed.
func (s *Scheduler) look(ctx context.Context, now time.Time) (work []*entry, complete []*line, err error) {
	rows, err := s.rows(ctx)
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	listed := map[string]bool{}
	for _, l := range s.plan.lines {
		items, err := l.all(ctx)
		if errs = append(errs, err); err == nil {
			complete = append(complete, l)
		}
		for _, item := range items {
			e := s.entryOf(l, item, rows, now)
			listed[e.state.key()] = true
			work = append(work, e)
		}
	}
	for _, l := range complete {
		work = append(work, s.gone(l, rows, listed, now)...)
	}
	slices.SortFunc(work, byKey)
	return work, complete, errors.Join(errs...)
}

// entryOf finds out what there is to do about an item.
func (s *Scheduler) entryOf(l *line, item engine.Item, rows map[string]state, now time.Time) *entry {
	key := rowOf(l.engine.Name, l.schedule.Name, item.Name)
	e := &entry{line: l, item: item, held: s.unwritten[key]}
	e.timing, _ = l.timing(item.Name)
	delete(s.absent, key)
	row, known := rows[key]
	if !known {
		row = state{engine: l.engine.Name, schedule: l.schedule.Name, item: item.Name, cron: e.timing.cron, spread: e.timing.spread,
			after: s.begins(l, len(rows) == 0, now), changed: now}
	}
	e.state = row.sane(now)
	holds := e.state.timing()
	if e.timing.cron != Off {
		e.slot, e.due = holds.latest(e.state.slot, e.state.after, now)
	}
	switch {
	case e.due:
		e.due = !now.Before(e.state.retryAt) && !now.Before(e.held.until)
	case !holds.same(e.timing):
		e.state.cron, e.state.spread, e.state.after, e.state.changed = e.timing.cron, e.timing.spread, now, now
		e.state.err, e.state.failures, e.state.retryAt = "", 0, time.Time{}
		e.write()
	case !known, e.state != row:
		e.write()
	}
	return e
}

func (e *entry) write() {
	op := e.state.op()
	e.op = &op
}

// begins is from when on slots of an item are sent that has no row: of one that came after this process has looked before, from that
// look on.
func (s *Scheduler) begins(l *line, adopted bool, now time.Time) time.Time {
	if seen, ok := s.seen[l]; ok && !seen.After(now) {
		return seen
	}
	if adopted {
		return now.Add(-adoption)
	}
	return now
}

// sane takes times back that lie in the future: the clock that they are of was wrong, and nothing would be sent until then.
func (r state) sane(now time.Time) state {
	if r.after.After(now.Add(maxSkew)) {
		r.after = now
	}
	if r.slot.After(now.Add(maxSkew)) {
		r.slot = now
	}
	if r.retryAt.After(now.Add(maxSkew)) {
		r.retryAt = now
	}
	return r
}

// gone are the rows of a schedule whose items are not there any more. They are switched off, so that an item that comes back is not
// late, and deleted when nobody has wanted to see them for long.
func (s *Scheduler) gone(l *line, rows map[string]state, listed map[string]bool, now time.Time) (work []*entry) {
	_, fixed := l.schedule.Items.Fixed()
	for key, row := range rows {
		if listed[key] || row.engine != l.engine.Name || row.schedule != l.schedule.Name {
			continue
		}
		if _, noted := s.absent[key]; !noted {
			s.absent[key] = now
		}
		e := &entry{line: l, state: row, timing: timing{cron: Off}}
		switch {
		case row.cron == Off && now.Sub(row.changed) > keepGone:
			op := tables.Delete(row.entity().Key, row.etag)
			e.op = &op
		case row.cron != Off && (!fixed || now.Sub(s.absent[key]) >= absence):
			e.state.cron, e.state.after, e.state.changed = Off, now, now
			e.state.err, e.state.failures, e.state.retryAt = "", 0, time.Time{}
			e.write()
		default:
			continue
		}
		work = append(work, e)
	}
	return work
}
