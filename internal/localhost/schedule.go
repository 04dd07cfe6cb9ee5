package localhost

import (
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/ncrontab"
)

// schedule determines when a timer is due.
type schedule struct {
	expression *ncrontab.Expression // nil: constant
	interval   time.Duration
}

// parseSchedule reads an NCRONTAB expression of six fields (or five, without seconds) or a time span.
func parseSchedule(text string) (schedule, error) {
	fields := len(strings.Fields(text))
	if fields == 1 {
		interval, err := parseTimeSpan(text)
		if err != nil {
			return schedule{}, fmt.Errorf("schedule: %w", err)
		}
		if interval < time.Second {
			return schedule{}, fmt.Errorf("schedule %q: an interval is at least a second", text)
		}
		return schedule{interval: interval}, nil
	}
	parsed, err := ncrontab.Parse(text)
	if err != nil {
		return schedule{}, err
	}
	return schedule{expression: &parsed}, nil
}

// next returns the first occurrence after t, in t's time zone.
func (s schedule) next(t time.Time) time.Time {
	if s.expression == nil {
		return t.Add(s.interval)
	}
	return s.expression.Next(t)
}

// monitored reports whether the real host stores a status: not for schedules that are due more than once a minute.
func (s schedule) monitored(now time.Time) bool {
	if s.expression == nil {
		return s.interval >= time.Minute
	}
	at := s.next(now)
	// A few occurrences in a row, because the gaps of an expression differ.
	for range 5 {
		following := s.next(at)
		if following.Sub(at) < time.Minute {
			return false
		}
		at = following
	}
	return true
}

// adjustsForDST returns the flag of that name in the trigger payload.
func (s schedule) adjustsForDST() bool { return s.expression != nil }
