package schedule

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// tickInterval is the longest time until the next tick.
const tickInterval = 2 * time.Minute

// maxLate bounds the targets that a Lateness names.
const maxLate = 5

// Lateness is the delay of an app's schedules.
type Lateness struct {
	// Late counts the targets whose next slot is overdue by more than tickInterval, and Failing those of them that
	// could not be sent.
	Late, Failing int
	// Longest is the longest delay of a target.
	Longest time.Duration
	// Items are some of them, the first in the order of a list: "engine/schedule item".
	Items []string
}

// Lateness returns the delay of the schedules. A target that no tick has seen is never late. It reads all rows.
func (s *Scheduler) Lateness(ctx context.Context) (Lateness, error) {
	rows, err := s.rows(ctx)
	if err != nil {
		return Lateness{}, err
	}
	var out Lateness
	now := s.now()
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		row := rows[key]
		if l := s.plan.lineOf(row); l != nil && !l.dropped(row) {
			out.note(l.status(row.item, &row, now), now)
		}
	}
	return out, nil
}

func (l *Lateness) note(item Status, now time.Time) {
	if item.NextAt.IsZero() || now.Sub(item.NextAt) < tickInterval {
		return
	}
	l.Late++
	if item.Failures > 0 {
		l.Failing++
	}
	l.Longest = max(l.Longest, now.Sub(item.NextAt))
	if len(l.Items) < maxLate {
		name := item.Engine
		if item.Schedule != "" {
			name += "/" + item.Schedule
		}
		l.Items = append(l.Items, strings.TrimSpace(name+" "+item.Item))
	}
}
