package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// DefaultLimit is the page length of a Filter without a limit.
	DefaultLimit = 50
	// MaxLimit is the longest page length.
	MaxLimit = 100
)

// ErrToken: a token does not belong to this list.
var ErrToken = errors.New("the continuation token is none of this list's")

// Status is the status of a target.
type Status struct {
	// Engine, Schedule and Item name it; Schedule and Item may be "".
	Engine, Schedule, Item string
	// Cron is the current expression, or Off, and Source its origin. Spread is that of the schedule.
	Cron   string
	Source Source
	Spread time.Duration
	// NextAt is when it is due: in the past when it is late. It is zero when it never is.
	NextAt time.Time
	// Slot is the occurrence that was sent last, zero before the first. It was due at DueAt and sent at SentAt.
	Slot, DueAt, SentAt time.Time
	// Messages counts its messages, and Sent names the first of them.
	Messages int
	Sent     Sent
	// Error is the reason why the next slot could not be sent, Failures the number of failures in a row, and RetryAt
	// the next try.
	Error    string
	Failures int
	RetryAt  time.Time
}

// Filter selects targets. A zero field does not filter.
type Filter struct {
	Engine, Schedule, Item string
	// Limit is the length of the page, 1 to MaxLimit; 0 means DefaultLimit.
	Limit int
	// Token is Page.Token of the page before.
	Token string
}

// Page is one page of a list, in the order of engines, schedules and targets.
type Page struct {
	Items []Status
	// Token continues the list, "" on the last page.
	Token string
}

// List lists targets: those known at start, and those that a tick has seen.
func (s *Scheduler) List(ctx context.Context, f Filter) (Page, error) {
	if f.Token != "" && strings.Count(f.Token, "~") < 2 {
		return Page{}, ErrToken
	}
	limit, now := min(cmp.Or(f.Limit, DefaultLimit), MaxLimit), s.now()
	found := s.plan.fixed(f, now)
	read := 0
	for e, err := range tables.All(ctx, s.tables, Table, tables.Query{Partition: partition, From: f.Token}) {
		if err != nil {
			return Page{}, fmt.Errorf("list schedules: %w", err)
		}
		row := stateOf(e)
		l := s.plan.lineOf(row)
		if tables.CompareKeys(e.Row, f.Token) <= 0 || l == nil || !f.matches(row.engine, row.schedule, row.item) || l.dropped(row) {
			continue
		}
		found[e.Row] = l.status(row.item, &row, now)
		if read++; read > limit { // the rest is on another page
			break
		}
	}
	var page Page
	for _, key := range slices.SortedFunc(maps.Keys(found), tables.CompareKeys) {
		if len(page.Items) == limit {
			page.Token = page.Items[limit-1].row()
			break
		}
		page.Items = append(page.Items, found[key])
	}
	return page, nil
}

func (s Status) row() string { return rowOf(s.Engine, s.Schedule, s.Item) }

func (f Filter) matches(engineName, schedule, item string) bool {
	return (f.Engine == "" || f.Engine == engineName) && (f.Schedule == "" || f.Schedule == schedule) && (f.Item == "" || f.Item == item)
}

// fixed returns the targets known at start, before storage is read, by row key.
func (p *Plan) fixed(f Filter, now time.Time) map[string]Status {
	all := map[string]Status{}
	for _, l := range p.lines {
		items, _ := l.schedule.Items.Fixed()
		if l.schedule.Items == nil {
			items = []engine.Item{{}}
		}
		for _, item := range items {
			if key := rowOf(l.engine.Name, l.schedule.Name, item.Name); tables.CompareKeys(key, f.Token) > 0 && f.matches(l.engine.Name, l.schedule.Name, item.Name) {
				all[key] = l.status(item.Name, nil, now)
			}
		}
	}
	return all
}

// lineOf returns the schedule of a row, nil for an unknown one.
func (p *Plan) lineOf(row state) *line {
	for _, l := range p.lines {
		if l.engine.Name == row.engine && l.schedule.Name == row.schedule {
			return l
		}
	}
	return nil
}

// dropped reports whether the target of a row no longer belongs to the schedule.
func (l *line) dropped(row state) bool {
	if fixed, ok := l.schedule.Items.Fixed(); ok {
		return !slices.ContainsFunc(fixed, named(row.item))
	}
	if l.schedule.Items == nil {
		return row.item != ""
	}
	t, _ := l.timing(row.item)
	return row.cron == Off && t.cron != Off // a tick has found it removed, or will find it returned
}

// status returns the status of a target from its row; nil is a target that no tick has seen.
func (l *line) status(item string, row *state, now time.Time) Status {
	t, source := l.timing(item)
	out := Status{Engine: l.engine.Name, Schedule: l.schedule.Name, Item: item, Cron: t.cron, Source: source, Spread: t.spread}
	after := now
	if row != nil {
		r := row.sane(now)
		out.Slot, out.SentAt, out.Messages, out.Sent = r.slot, r.sentAt, r.messages, r.sent
		out.Error, out.Failures, out.RetryAt = r.err, r.failures, r.retryAt
		if !r.slot.IsZero() {
			out.DueAt = r.slot.Add(r.timing().shift)
		}
		if owed := r.timing(); owed.same(t) || t.cron != Off && owes(owed, r, now) {
			t, after = owed, r.after
		}
	}
	if _, due, ok := t.next(out.Slot, after); ok {
		out.NextAt = due
	}
	return out
}

// owes reports whether a row's own times have an unsent slot.
func owes(t timing, r state, now time.Time) bool {
	_, ok := t.latest(r.slot, r.after, now)
	return ok
}
