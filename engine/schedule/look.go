package schedule

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/tables"
)

// look compares the plan with storage, and returns the work, and the schedules whose targets all have rows. The error
// may come with entries for the targets that could be listed.
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

// entryOf returns the work for a target.
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

// begins returns the time from which slots of a target without a row are sent: for a target that appeared after this
// process has read before, from that read on.
func (s *Scheduler) begins(l *line, adopted bool, now time.Time) time.Time {
	if seen, ok := s.seen[l]; ok && !seen.After(now) {
		return seen
	}
	if adopted {
		return now.Add(-adoption)
	}
	return now
}

// sane resets times that lie in the future: they come from a wrong clock, and would block slots until then.
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

// gone returns the rows of a schedule whose targets no longer exist. They are switched off, so that a target that
// returns is not late, and deleted after keepGone.
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
