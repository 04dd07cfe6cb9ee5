package handler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
)

const (
	// schedulesTimer is the function that sends the due slots of all schedules.
	schedulesTimer = "schedules-timer"
	// schedulesSetting overrides the times of engines' schedules.
	schedulesSetting = "ROUNDHOUSE_SCHEDULES"
)

// readSchedules makes the plan of engines with the setting, and records its errors.
func readSchedules(r *settings.Reader, engines []engine.Definition) *schedule.Plan {
	var s schedule.Setting
	r.JSON(schedulesSetting, &s)
	plan, err := schedule.NewPlan(engines, s)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			r.Reject(schedulesSetting, errors.New(line))
		}
	}
	return plan
}

// wireSchedules makes the scheduler.
func (p *parts) wireSchedules() error {
	plan := readSchedules(p.reader, p.definitions)
	err := p.reader.Err()
	if err != nil {
		return err
	}
	p.schedules, err = schedule.New(schedule.Config{Plan: plan, Tables: p.platform.Tables, Queues: p.platform.Queues, Log: p.log})
	return err
}

// onSchedules sends due slots. It uses the state in storage, so it may run at any minute, any number of times.
func (p *parts) onSchedules(ctx context.Context, _ trigger.TimerDelivery) error {
	n, err := p.schedules.Tick(ctx)
	if err == nil && n.Items == 0 {
		return trigger.ErrIdle
	}
	p.log.Log(ctx, levelFor(n.Messages+n.Failed > 0 || err != nil), "schedules", "items", n.Items, "messages", n.Messages, "failed", n.Failed, "complete", err == nil)
	return err
}

// sendSlot sends the messages of an occurrence of a schedule, at any time.
func (p *parts) sendSlot(ctx context.Context, engineName, name string, slot time.Time) (sent int, err error) {
	for _, d := range p.definitions {
		for _, s := range d.Schedules {
			if d.Name == engineName && s.Name == name {
				return s.Send(ctx, d, p.platform.Queues, slot)
			}
		}
	}
	return 0, fmt.Errorf("schedule %q of engine %q: %w", name, engineName, schedule.ErrNotFound)
}
