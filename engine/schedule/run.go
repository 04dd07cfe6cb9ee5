package schedule

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// MaxRun bounds the messages of a run by hand.
const MaxRun = 1000

// runKind is the kind from which correlation ids of runs by hand are derived.
const runKind = "schedule-run"

// ErrTooMany: a run by hand would send more than MaxRun messages.
var ErrTooMany = errors.New("too many messages for a run by hand: name an item")

// Run is a run by hand: what a schedule would send, sent now. It stands for no slot, and no slot is left out for it.
type Run struct {
	Engine string
	// Schedule is the schedule's name, which an engine's only schedule need not be given.
	Schedule string
	// Item is the item that it is for. All means all of them; a schedule without items needs neither.
	Item string
	All  bool
	// Key makes repeats of a run the same work; of a schedule without items, whose messages tell the time, within a minute.
	Key string
}

// Check says whether a run by hand can be done: its errors are ErrNotFound, ErrSelection, ErrTooMany, and those of the list of
// items.
func (s *Scheduler) Check(ctx context.Context, r Run) error {
	l, err := s.plan.find(r.Engine, r.Schedule)
	if err == nil {
		_, err = l.chosen(ctx, r)
	}
	return err
}

// Run sends the messages of a run by hand, with correlation ids of their own. Those that were sent come with an error, too. The
// errors are ErrNotFound, ErrSelection, ErrTooMany, and those of the engine's messages and of the queue.
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

// chosen are the items that a run is for.
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

// handSlot is what the messages of a run by hand are told: no slot, or, where a schedule has no items, which knows of no other way,
// the minute.
func (s *Scheduler) handSlot(l *line) time.Time {
	if l.schedule.Items != nil {
		return time.Time{}
	}
	return s.now().Truncate(time.Minute)
}
