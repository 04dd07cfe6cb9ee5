package schedule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// MaxSpread bounds a spread.
const MaxSpread = 7 * 24 * time.Hour

// Setting overrides the times of schedules, by their keys (engine.Schedule.Key). An engine's only schedule also has
// the engine's name as its key.
type Setting map[string]Rule

// Rule overrides the times of a schedule.
type Rule struct {
	// Cron is an NCRONTAB expression, or Off; "" keeps that of the definition.
	Cron string `json:"cron"`
	// Spread is a Go duration: each target is delayed by a part of it that is always the same for the target. ""
	// means none.
	Spread string `json:"spread"`
	// Items are the targets with times of their own.
	Items map[string]ItemRule `json:"items"`
}

// ItemRule overrides the times of a target.
type ItemRule struct {
	// Cron is an NCRONTAB expression, or Off.
	Cron string `json:"cron"`
}

// spread reads the spread of a rule.
func (r Rule) spread() (time.Duration, error) {
	if r.Spread == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(r.Spread)
	if err != nil || d < 0 || d > MaxSpread {
		return 0, fmt.Errorf("spread %.32q: give a Go duration of up to %v, such as 2h", r.Spread, MaxSpread)
	}
	return d, nil
}

// apply checks a rule for a schedule, and sets the schedule's times.
func (r Rule) apply(l *line) error {
	var errs []error
	spread, err := r.spread()
	errs = append(errs, err)
	l.spread = spread
	if r.Cron != "" {
		l.cron, l.source = r.Cron, FromSetting
	}
	if _, err := newTiming(l.cron, spread, l.key); err != nil {
		errs = append(errs, fmt.Errorf("cron: %w", err))
	}
	if len(r.Items) > 0 && l.schedule.Items == nil {
		return errors.Join(append(errs, errors.New("items: the schedule has none"))...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Items)) {
		if err := l.checkItem(name, r.Items[name]); err != nil {
			errs = append(errs, fmt.Errorf("items: %.80q: %w", name, err))
		}
	}
	l.items = r.Items
	return errors.Join(errs...)
}

// checkItem checks the rule of a target for the schedule.
func (l *line) checkItem(name string, r ItemRule) error {
	if fixed, ok := l.schedule.Items.Fixed(); ok && !slices.ContainsFunc(fixed, named(name)) {
		return errors.New("the schedule has no such item")
	}
	if r.Cron == "" {
		return fmt.Errorf("give it a cron, or %q", Off)
	}
	_, err := newTiming(r.Cron, l.spread, name)
	return err
}
