package localhost

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// schedule says when a timer is due.
type schedule struct {
	cron     cron.Schedule // nil: constant
	interval time.Duration
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
	// The library also reads a time zone in front, which NCRONTAB does not know.
	if strings.Contains(text, "=") {
		return schedule{}, fmt.Errorf("schedule %q: a time zone cannot be part of it", text)
	}
	parser, err := cron.TryNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	if err != nil {
		return schedule{}, fmt.Errorf("schedule: %w", err) // unreachable unless bug in this package
	}
	parsed, err := parser.Parse(text)
	if err != nil {
		return schedule{}, fmt.Errorf("schedule %q (six fields: second minute hour day month weekday): %w", text, err)
	}
	if parsed.Next(time.Now()).IsZero() {
		return schedule{}, fmt.Errorf("schedule %q: %w", text, errNeverDue)
	}
	return schedule{cron: parsed}, nil
}

var errNeverDue = errors.New("no such date exists")

// next is the first occurrence after t, in t's time zone.
func (s schedule) next(t time.Time) time.Time {
	if s.cron == nil {
		return t.Add(s.interval)
	}
	return s.cron.Next(t)
}

// monitored says whether the real host keeps a status: not for schedules that are due more than once a minute.
func (s schedule) monitored(now time.Time) bool {
	if s.cron == nil {
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

// adjustsForDST is what the trigger payload says about the schedule.
func (s schedule) adjustsForDST() bool { return s.cron != nil }
