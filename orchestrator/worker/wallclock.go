package worker

import (
	"strings"
	"time"
)

// after returns the first occurrence after t. An expression that names hours is read on the clock of the zone: each
// of its times is one occurrence on every day. A time that the clock skips is shifted by the same amount. A time that
// the clock shows twice occurs when it is shown first. An expression for all hours, such as "every ten minutes",
// follows elapsed time.
func (s schedule) after(t time.Time) time.Time {
	if s.everyHour() {
		return s.expression.Next(t.In(s.Location))
	}
	next := s.onClock(t)
	if left := s.leftOut(t); next.IsZero() || !left.IsZero() && left.Before(next) {
		return left
	}
	return next
}

// everyHour reports whether the expression is for all hours, or for every nth hour.
func (s schedule) everyHour() bool {
	fields := strings.Fields(s.Cron)
	if len(fields) < 5 {
		return true
	}
	hour := fields[len(fields)-4]
	return strings.ContainsAny(hour, "*?") || hour == "0-23"
}

// onClock returns the first occurrence after t, without the times skipped just before t.
func (s schedule) onClock(t time.Time) time.Time {
	for wall := wallOf(t, offset(t, s.Location)); ; {
		if wall = s.expression.Next(wall); wall.IsZero() {
			return wall
		}
		if at := instant(wall, s.Location); at.After(t) {
			return at
		}
	}
}

// leftOut returns the first occurrence after t that the clock skipped when it was last set forward; the zero time for
// none.
func (s schedule) leftOut(t time.Time) time.Time {
	change, _ := t.In(s.Location).ZoneBounds()
	if change.IsZero() {
		return change
	}
	before := offset(change.Add(-1), s.Location)
	end := wallOf(change, offset(change, s.Location))
	wall := s.expression.Next(wallOf(t, before))
	if wall.IsZero() || !wall.Before(end) {
		return time.Time{}
	}
	return wall.Add(-before).In(s.Location)
}

// instant returns when a clock in a zone first shows a time; for a skipped time, when the clock would have shown it
// without being set forward.
func instant(wall time.Time, zone *time.Location) time.Time {
	near := wall.Add(-offset(wall, zone)).In(zone)
	from, to := near.ZoneBounds()
	var first time.Time
	for _, in := range []time.Time{from.Add(-1), near, to} {
		at := wall.Add(-offset(in, zone)).In(zone)
		if shown := wallOf(at, offset(at, zone)); shown.Equal(wall) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() {
		return first
	}
	for _, change := range []time.Time{from, to} {
		before := offset(change.Add(-1), zone)
		if !change.IsZero() && !wallOf(change, before).After(wall) && wall.Before(wallOf(change, offset(change, zone))) {
			return wall.Add(-before).In(zone)
		}
	}
	return near
}

// wallOf returns the clock time at t, ahead of UTC by an offset, as if it were UTC.
func wallOf(t time.Time, ahead time.Duration) time.Time { return t.UTC().Add(ahead) }

// offset returns how far the clock of a zone is ahead of UTC at t.
func offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
