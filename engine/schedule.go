package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/ncrontab"
)

// Schedule sends messages to an engine's queue at certain times. Package schedule sends due messages once a minute.
//
// Messages of one occurrence always have the same correlation ids, so an occurrence that is sent again is a duplicate.
type Schedule struct {
	// Name distinguishes the schedules of an engine; one of them may have no name.
	Name string
	// Cron is an NCRONTAB expression of six fields, seconds first, in UTC. It is due once a minute at most.
	Cron string
	// Messages returns the messages of an occurrence. slot is the time of the occurrence, in UTC; for a manual run,
	// it is the time of the request. A message needs no engine. A message without correlation id gets one that is
	// derived from the schedule, the slot and its contents. Messages that are returned with an error are sent
	// nevertheless. nil means one message without input.
	Messages func(ctx context.Context, slot time.Time) ([]Message, error)
	// Items are the targets of the schedule, each with times and a message of its own; nil for a schedule as a whole,
	// which has Messages instead.
	Items *Items
}

// Occurs reports whether a time is an occurrence of Cron, regardless of settings.
func (s Schedule) Occurs(at time.Time) bool {
	e, err := ncrontab.Parse(s.Cron)
	return err == nil && e.Prev(at.UTC().Add(1)).Equal(at)
}

// scheduleKind is the kind from which correlation ids of schedules are derived.
const scheduleKind = "schedule"

// scheduleName matches valid names of schedules.
var scheduleName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// Key returns the unique name of the schedule: the engine's name, with a slash and its own name if it has one.
func (s Schedule) Key(engine string) string {
	if s.Name == "" {
		return engine
	}
	return engine + "/" + s.Name
}

func (s Schedule) validate() error {
	if s.Name != "" && !scheduleName.MatchString(s.Name) {
		return fmt.Errorf("schedule %.64q: a name has lower-case letters, digits and dashes", s.Name)
	}
	if s.Items != nil && s.Messages != nil {
		return fmt.Errorf("schedule %q: it has Messages or Items, not both", s.Name)
	}
	if err := CheckCron(s.Cron); err != nil {
		return fmt.Errorf("schedule %q: %w", s.Name, err)
	}
	if err := s.Items.validate(); err != nil {
		return fmt.Errorf("schedule %q: %w", s.Name, err)
	}
	return nil
}

// validateSchedules validates the schedules of an engine.
func validateSchedules(all []Schedule) error {
	var errs []error
	known := map[string]bool{}
	for _, s := range all {
		if errs = append(errs, s.validate()); known[s.Name] {
			errs = append(errs, fmt.Errorf("schedule %q: there are two of this name", s.Name))
		}
		known[s.Name] = true
	}
	return errors.Join(errs...)
}

// oneSecond matches the seconds of an expression that is due once a minute at most.
var oneSecond = regexp.MustCompile(`^[0-9]{1,2}$`)

// CheckCron returns an error unless the expression is an NCRONTAB expression of six fields, as the Functions host reads
// it, that is due once a minute at most.
func CheckCron(expression string) error {
	fields := strings.Fields(expression)
	if len(fields) != 6 {
		return fmt.Errorf(`%.64q: an NCRONTAB expression has six fields, "second minute hour day month weekday", and no time zone`, expression)
	}
	if _, err := ncrontab.Parse(expression); err != nil {
		return err
	}
	if !oneSecond.MatchString(fields[0]) {
		return fmt.Errorf("%.64q: it is due more than once a minute, and schedules are looked at once a minute: give the seconds as one number, "+
			"or let an orchestration sleep and continue as new", expression)
	}
	return nil
}

// Sender puts messages into queues; queues.Store does.
type Sender interface {
	Send(ctx context.Context, queue string, body []byte, delay time.Duration) (id string, err error)
}

// Send sends the messages of an occurrence, of all targets, and returns how many. A failed message does not stop the
// others.
func (s Schedule) Send(ctx context.Context, d Definition, queues Sender, slot time.Time) (sent int, err error) {
	if s.Items == nil {
		made, err := s.SendItem(ctx, d, queues, Item{}, slot)
		return len(made), err
	}
	var errs []error
	for item, err := range s.Items.All(ctx) {
		if err != nil {
			errs = append(errs, fmt.Errorf("items of schedule %s: %w", s.Key(d.Name), err))
			break
		}
		made, err := s.SendItem(ctx, d, queues, item, slot)
		errs = append(errs, err)
		sent += len(made)
	}
	return sent, errors.Join(errs...)
}

// SendItem sends the messages of an occurrence of one target, and returns the sent ones. The target of a schedule
// without targets is the zero Item.
func (s Schedule) SendItem(ctx context.Context, d Definition, queues Sender, item Item, slot time.Time) (sent []Message, err error) {
	slot = slot.UTC()
	messages, err := s.Compose(ctx, d, item, slot)
	sent, failed := d.SendAll(ctx, queues, messages)
	if err = errors.Join(err, failed); err != nil {
		return sent, fmt.Errorf("schedule %s%s for %s: %w", s.Key(d.Name), item.suffix(), slot.Format(time.RFC3339), err)
	}
	return sent, nil
}

// Compose returns the messages of an occurrence of one target, with their correlation ids. Messages that are returned
// with an error are to be sent nevertheless.
func (s Schedule) Compose(ctx context.Context, d Definition, item Item, slot time.Time) (messages []Message, err error) {
	switch {
	case item.Message != nil:
		var m Message
		if m, err = item.Message(slot); err != nil {
			return nil, err
		}
		messages = []Message{m}
	case s.Messages != nil:
		messages, err = s.Messages(ctx, slot)
	default:
		messages = []Message{{}}
	}
	for i := range messages {
		m := &messages[i]
		m.Engine = d.Name
		if m.CorrelationID == "" {
			key := []string{d.Name, s.Name, m.InstanceID, m.TenantID, m.Operation, string(m.Input), slot.Format(time.RFC3339Nano)}
			if item.Name != "" {
				key = append(key, item.Name)
			}
			m.CorrelationID = ScheduleCorrelationID(scheduleKind, key...)
		}
	}
	return messages, err
}

// SendAll sends messages to the engine's queue, and returns the sent ones. A failed message does not stop the others.
func (d Definition) SendAll(ctx context.Context, queues Sender, messages []Message) (sent []Message, err error) {
	var errs []error
	for i, m := range messages {
		if ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("%d messages were not sent: %w", len(messages)-i, context.Cause(ctx)))
			break
		}
		body, err := json.Marshal(m)
		if err == nil {
			_, err = queues.Send(ctx, d.Queue, body, 0)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("message for instance %.80q: %w", m.InstanceID, err))
			continue
		}
		sent = append(sent, m)
	}
	return sent, errors.Join(errs...)
}
