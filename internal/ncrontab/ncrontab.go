// Package ncrontab reads NCRONTAB expressions, as the Functions host does: six fields, second minute hour day month
// weekday, or five without the second. A day of the month and a weekday together must both match. Forms that the host
// refuses, or reads differently from cron (a weekday 7, FRI-MON, a step of 0), are errors.
//
// It owns no storage keys.
package ncrontab

import (
	"errors"
	"fmt"
	"time"

	"github.com/netresearch/go-cron"
)

// ErrNeverDue: no such date exists.
var ErrNeverDue = errors.New("no such date exists: use a day that one of its months has")

// searchYears is the longest time between two occurrences: 29 February is on each weekday once in 40 years where a
// century has no leap year.
const searchYears = 40

// Expression is a parsed expression; Parse makes it.
type Expression struct{ schedule cron.ScheduleWithPrev }

// Parse reads an expression. The error names it.
func Parse(text string) (Expression, error) {
	values, err := normal(text)
	if err != nil {
		return Expression{}, fmt.Errorf("schedule %.128q (six fields: second minute hour day month weekday): %w", text, err)
	}
	parser, err := cron.TryNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	if err != nil {
		return Expression{}, fmt.Errorf("schedule: %w", err) // unreachable unless bug in this package
	}
	parsed, err := parser.WithMaxSearchYears(searchYears).Parse(values)
	if err != nil {
		return Expression{}, fmt.Errorf("schedule %q (six fields: second minute hour day month weekday): %w", text, err)
	}
	both, ok := parsed.(cron.ScheduleWithPrev)
	if !ok || parsed.Next(time.Now()).IsZero() {
		return Expression{}, fmt.Errorf("schedule %q: %w", text, ErrNeverDue)
	}
	return Expression{both}, nil
}

// Next returns the first occurrence after t, in the time zone of t; the zero time without one.
func (e Expression) Next(t time.Time) time.Time { return e.schedule.Next(t) }

// Prev returns the last occurrence before t, in the time zone of t; the zero time without one.
func (e Expression) Prev(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		t = whole.Add(time.Second) // the library skips the second that t is in
	}
	return e.schedule.Prev(t)
}
