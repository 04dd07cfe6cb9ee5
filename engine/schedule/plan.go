package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// Distinguish these errors with errors.Is.
var (
	// ErrNotFound: the schedule or target does not exist.
	ErrNotFound = errors.New("no such schedule or item")
	// ErrSelection: the selection is ambiguous.
	ErrSelection = errors.New("say which is meant")
)

// Source is the origin of a target's times.
type Source string

// The sources; each overrides those above it.
const (
	FromEngine  Source = "engine"
	FromSetting Source = "setting"
	FromItem    Source = "item"
)

// Plan is the immutable list of schedules and their times. NewPlan makes it.
type Plan struct{ lines []*line }

// line is a schedule of an engine.
type line struct {
	engine   engine.Definition
	schedule engine.Schedule
	// key is its key in a Setting.
	key    string
	cron   string
	spread time.Duration
	source Source
	items  map[string]ItemRule
}

// NewPlan makes the plan of engines. It returns all errors of the setting.
func NewPlan(engines []engine.Definition, s Setting) (*Plan, error) {
	p := &Plan{}
	byKey := map[string]*line{}
	for _, d := range engines {
		for _, sch := range d.Schedules {
			l := &line{engine: d, schedule: sch, key: sch.Key(d.Name), cron: sch.Cron, source: FromEngine}
			p.lines, byKey[l.key] = append(p.lines, l), l
		}
		if len(d.Schedules) == 1 {
			byKey[d.Name] = byKey[d.Schedules[0].Key(d.Name)]
		}
	}
	var errs []error
	ruled := map[*line]string{}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		l := byKey[key]
		if l == nil {
			errs = append(errs, fmt.Errorf("%.80q: there is no such schedule here: there are %s", key, strings.Join(slices.Sorted(maps.Keys(byKey)), ", ")))
			continue
		}
		if other, twice := ruled[l]; twice {
			errs = append(errs, fmt.Errorf("%.80q is the schedule %q: give its times once", key, other))
		}
		ruled[l] = key
		if err := s[key].apply(l); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return p, errors.Join(errs...)
}

// timing returns when a target of the schedule is due, which was checked before.
func (l *line) timing(item string) (timing, Source) {
	cron, source := l.cron, l.source
	if r, ok := l.items[item]; ok {
		cron, source = r.Cron, FromItem
	}
	t, err := newTiming(cron, l.spread, rowOf(l.engine.Name, l.schedule.Name, item))
	if err != nil {
		return timing{cron: Off}, source // unreachable: definition and setting were checked
	}
	return t, source
}

// all returns the targets of the schedule, the zero target for a schedule without targets; err comes with those that
// were read.
func (l *line) all(ctx context.Context) (items []engine.Item, err error) {
	if l.schedule.Items == nil {
		return []engine.Item{{}}, nil
	}
	known := map[string]bool{}
	for item, err := range l.schedule.Items.All(ctx) {
		switch {
		case err != nil:
			return items, fmt.Errorf("items of schedule %s: %w", l.key, err)
		case len(items) == MaxItems:
			return items, fmt.Errorf("items of schedule %s: only the first %d are sent: divide them among apps", l.key, MaxItems)
		case !known[item.Name]: // a list that changes during the read may have one twice
			known[item.Name] = true
			items = append(items, item)
		}
	}
	return items, nil
}

// find returns the schedule of an engine; name may be "" for the engine's only one.
func (p *Plan) find(engineName, name string) (*line, error) {
	var found []*line
	for _, l := range p.lines {
		if l.engine.Name != engineName {
			continue
		}
		if l.schedule.Name == name {
			return l, nil
		}
		found = append(found, l)
	}
	switch {
	case name != "" || len(found) == 0:
		return nil, fmt.Errorf("schedule %.80q of engine %.80q: %w", name, engineName, ErrNotFound)
	case len(found) > 1:
		return nil, fmt.Errorf("engine %s has several schedules: %w", engineName, ErrSelection)
	}
	return found[0], nil
}

// named returns a predicate for the target with the name.
func named(name string) func(engine.Item) bool {
	return func(i engine.Item) bool { return i.Name == name }
}
