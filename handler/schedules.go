package handler

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/trigger"
)

// onSchedule sends the messages of a schedule when its timer fires.
func (p *parts) onSchedule(d engine.Definition, s engine.Schedule) trigger.TimerHandler {
	return func(ctx context.Context, t trigger.TimerDelivery) error {
		at := slot(t, time.Now)
		sent, err := s.Send(ctx, d, p.platform.Queues, at)
		p.log.InfoContext(ctx, "schedule", "engine", d.Name, "function", t.Function, "slot", at, "sent", sent, "complete", err == nil)
		return err
	}
}

// slot is the time that an occurrence stands for: when it was due, however late it comes. A run by hand has the next
// occurrence in it, which is still to come, and stands for the time at which it is made.
func slot(t trigger.TimerDelivery, now func() time.Time) time.Time {
	at := t.FiredAt
	if at.IsZero() {
		at = now()
	}
	if !t.ScheduledAt.IsZero() && t.ScheduledAt.Before(at) {
		at = t.ScheduledAt
	}
	return at.UTC()
}
