package schedule

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// MaxRun bounds the messages of a manual run.
const MaxRun = 1000

// runKind is the kind from which correlation ids of manual runs are derived.
const runKind = "schedule-run"

// ErrTooMany: a manual run would send more than MaxRun messages.
var ErrTooMany = errors.New("too many messages for a run by hand: name an item")

// Run is a manual run: it sends the messages of a schedule now. It represents no slot, and skips none.
type Run struct {
	Engine string
	// Schedule is the schedule's name, optional for an engine with one schedule.
	Schedule string
	// Item is the target. All selects all targets; a schedule without targets needs neither.
	Item string
	All  bool
	// Key makes repeats of a run the same work; for a schedule without targets, whose messages contain the time,
	// within a minute.
	Key string
}

// Check reports whether a manual run is possible. The errors are ErrNotFound, ErrSelection, ErrTooMany, and those of
// the list of targets.
func (s *Scheduler) Check(ctx context.Context, r Run) error {
	l, err := s.plan.find(r.Engine, r.Schedule)
	if err == nil {
		_, err = l.chosen(ctx, r)
	}
	return err
}

// Run sends the messages of a manual run, with correlation ids of their own. Sent messages are returned with an
// error, too. The errors are ErrNotFound, ErrSelection, ErrTooMany, and those of the engine's messages and of the
// queue.
func (s *Scheduler) Run(ctx context.Context, r Run) (sent []engine.Message, err error) {
	l, err := s.plan.find(r.Engine, r.Schedule)
	if err != nil {
		return nil, err
	}
	items, err := l.chosen(ctx, r)
	if err != nil {
		return nil, err
	}
	slot := s.handSlot(l)
	var messages []engine.Message
	for _, item := range items {
		made, err := l.schedule.Compose(ctx, l.engine, item, slot)
		if err != nil {
			return nil, fmt.Errorf("run by hand of schedule %s, item %.80q: nothing was sent: %w", l.key, item.Name, err)
		}
		for i := range made {
			made[i].CorrelationID = engine.ScheduleCorrelationID(runKind, l.engine.Name, l.schedule.Name, item.Name, strconv.Itoa(i), slot.Format(time.RFC3339), r.Key)
		}
		messages = append(messages, made...)
	}
	if len(messages) > MaxRun {
		return nil, fmt.Errorf("schedule %s makes %d messages: %w", l.key, len(messages), ErrTooMany)
	}
	if sent, err = l.engine.SendAll(ctx, s.queues, messages); err != nil {
		return sent, fmt.Errorf("run by hand of schedule %s: %d of %d messages were sent: %w", l.key, len(sent), len(messages), err)
	}
	return sent, nil
}

// chosen returns the targets of a run.
func (l *line) chosen(ctx context.Context, r Run) ([]engine.Item, error) {
	items, err := l.all(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case l.schedule.Items == nil && r.Item != "":
		return nil, fmt.Errorf("schedule %s has no items: %w", l.key, ErrNotFound)
	case l.schedule.Items == nil:
		return items, nil
	case r.Item != "" && r.All, r.Item == "" && !r.All:
		return nil, fmt.Errorf("schedule %s has items: name one, or say that all are meant: %w", l.key, ErrSelection)
	case r.All && len(items) > MaxRun:
		return nil, fmt.Errorf("schedule %s has %d items: %w", l.key, len(items), ErrTooMany)
	case r.All:
		return items, nil
	}
	for _, item := range items {
		if item.Name == r.Item {
			return []engine.Item{item}, nil
		}
	}
	return nil, fmt.Errorf("item %.80q of schedule %s: %w", r.Item, l.key, ErrNotFound)
}

// handSlot returns the slot of a manual run's messages: none, or the minute for a schedule without targets, whose
// messages have no other distinction.
func (s *Scheduler) handSlot(l *line) time.Time {
	if l.schedule.Items != nil {
		return time.Time{}
	}
	return s.now().Truncate(time.Minute)
}
