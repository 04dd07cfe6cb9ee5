package cli

import (
	"errors"
	"strings"
	"time"
)

// errTime lists the valid forms of a time.
var errTime = errors.New("use today, yesterday, a date such as 2026-11-21, a time such as 2026-11-21T10:00:00Z, or how long ago it is, such as 2h")

// parseTime parses a time flag; today, yesterday and 2h are relative to now. Days begin at midnight UTC, as in the
// API.
func parseTime(text string, now time.Time) (time.Time, error) {
	now = now.UTC()
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch strings.ToLower(text) {
	case "today":
		return today, nil
	case "yesterday":
		return today.AddDate(0, 0, -1), nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago.Abs()).Truncate(time.Second), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errTime
}
