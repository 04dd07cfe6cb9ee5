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

// Schedule sends messages to an engine's queue at certain times.
//
// The host does not repeat an occurrence that failed, but it may repeat one of which it lost track, and anybody can
// trigger one by hand. Messages of one occurrence always have the same correlation ids, so repeated ones are
// duplicates.
type Schedule struct {
	// Name distinguishes the schedules of an engine: the timer function is "{engine}-{Name}-timer", or "{engine}-timer"
	// when it is empty.
	Name string
	// Cron is an NCRONTAB expression of six fields, seconds first, in UTC.
	Cron string
	// Messages returns what an occurrence sends. slot is the time of the occurrence, in UTC. A message needs no engine.
	// A message without correlation id gets one that is derived from the schedule, the slot and its contents. Messages
	// that are returned with an error are sent nevertheless. nil means one message without input.
	Messages func(ctx context.Context, slot time.Time) ([]Message, error)
}

// scheduleKind is the kind from which correlation ids of schedules are derived.
const scheduleKind = "schedule"

// scheduleName matches what the host accepts as a part of a function's name.
var scheduleName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// Function is the name of the schedule's timer function for this engine.
func (s Schedule) Function(engine string) string {
	if s.Name == "" {
		return engine + "-timer"
	}
	return engine + "-" + s.Name + "-timer"
}

func (s Schedule) validate() error {
	if s.Name != "" && !scheduleName.MatchString(s.Name) {
		return fmt.Errorf("schedule %.64q: a name has lower-case letters, digits and dashes", s.Name)
	}
	if err := CheckCron(s.Cron); err != nil {
		return fmt.Errorf("schedule %q: %w", s.Name, err)
	}
	return nil
}

// CheckCron returns an error unless the expression is an NCRONTAB expression of six fields, as the Functions host reads
// it.
func CheckCron(expression string) error {
	if len(strings.Fields(expression)) != 6 {
		return fmt.Errorf(`%.64q: an NCRONTAB expression has six fields, "second minute hour day month weekday", and no time zone`, expression)
	}
	_, err := ncrontab.Parse(expression)
	return err
}

// Sender puts messages into queues; queues.Store does.
type Sender interface {
	Send(ctx context.Context, queue string, body []byte, delay time.Duration) (id string, err error)
}

// Send sends the messages of an occurrence and returns how many. A message that cannot be sent does not keep the others
// from being sent.
func (s Schedule) Send(ctx context.Context, d Definition, queues Sender, slot time.Time) (sent int, err error) {
	slot = slot.UTC()
	messages := []Message{{}}
	var errs []error
	if s.Messages != nil {
		if messages, err = s.Messages(ctx, slot); err != nil {
			errs = append(errs, err)
		}
	}
	for i, m := range messages {
		if ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("%d messages were not sent: %w", len(messages)-i, context.Cause(ctx)))
			break
		}
		if err := s.send(ctx, d, queues, slot, m); err != nil {
			errs = append(errs, err)
			continue
		}
		sent++
	}
	if err := errors.Join(errs...); err != nil {
		return sent, fmt.Errorf("%s for %s: %w", s.Function(d.Name), slot.Format(time.RFC3339), err)
	}
	return sent, nil
}

func (s Schedule) send(ctx context.Context, d Definition, queues Sender, slot time.Time, m Message) error {
	m.Engine = d.Name
	if m.CorrelationID == "" {
		m.CorrelationID = DeriveCorrelationID(scheduleKind, d.Name, s.Name, m.InstanceID, m.TenantID, m.Operation, string(m.Input), slot.Format(time.RFC3339Nano))
	}
	body, err := json.Marshal(m)
	if err == nil {
		_, err = queues.Send(ctx, d.Queue, body, 0)
	}
	if err != nil {
		return fmt.Errorf("message for instance %.80q: %w", m.InstanceID, err)
	}
	return nil
}
