package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/ncrontab"
	"github.com/vibedata/roundhouse/orchestrator"
)

// slotForm is the format of a slot in the id of an orchestration, in UTC.
const slotForm = "2006-01-02T15:04:05Z"

// Schedule starts an orchestration at set times. Each of these times, a slot, is one orchestration, whose id is the
// name of the schedule, a hyphen, and the slot in UTC, as in "report-2026-11-22T19:00:00Z". Any number of workers may
// have the same schedule; each slot is started once.
type Schedule struct {
	// Name names the schedule; it is unique.
	Name string
	// Cron is the NCRONTAB expression: second minute hour day month weekday, or five fields without the second.
	Cron string
	// Orchestrator is the name of the orchestrator, Input its argument as JSON; none is null.
	Orchestrator string
	Input        json.RawMessage
	// Location is the time zone of Cron; default UTC. When the clock is set forward, a skipped time is shifted by the
	// same amount; when it is set back, a repeated time is one slot. An expression for all hours follows elapsed
	// time.
	Location *time.Location
	// CatchUp bounds the age of a missed slot: the first worker that runs again starts the latest one; default 5 min.
	// It must be shorter than Config.Retention, or a slot could be started twice.
	CatchUp time.Duration
}

// schedule is a Schedule with its expression parsed.
type schedule struct {
	Schedule
	expression ncrontab.Expression
}

// checkSchedules returns every error of the schedules.
func checkSchedules(c Config) (errs []error) {
	known, names := map[string]bool{}, map[string]bool{}
	for _, o := range c.Runtime.Orchestrators {
		if o != nil {
			known[o.Name()] = true
		}
	}
	for _, s := range c.Schedules {
		s = s.parsed().Schedule
		_, err := ncrontab.Parse(s.Cron)
		switch {
		case s.Name == "" || names[s.Name]:
			errs = append(errs, fmt.Errorf("schedule %q: schedules need names, each its own", s.Name))
		case err != nil:
			errs = append(errs, fmt.Errorf("schedule %s: %w", s.Name, err))
		case !known[s.Orchestrator]:
			errs = append(errs, fmt.Errorf("schedule %s: %q: %w", s.Name, s.Orchestrator, orchestrator.ErrUnknownOrchestrator))
		case !json.Valid(s.Input):
			errs = append(errs, fmt.Errorf("schedule %s: the input is not JSON", s.Name))
		case s.CatchUp < 0 || c.Retention > 0 && s.CatchUp >= c.Retention:
			errs = append(errs, fmt.Errorf("schedule %s: CatchUp is %v: use more than 0, and less than the Retention", s.Name, s.CatchUp))
		}
		names[s.Name] = true
	}
	return errs
}

// parsed returns the schedule with its expression parsed and its defaults set. Its expression was checked before.
func (s Schedule) parsed() schedule {
	if s.Location == nil {
		s.Location = time.UTC
	}
	if len(s.Input) == 0 {
		s.Input = json.RawMessage("null")
	}
	setDefault(&s.CatchUp, 5*time.Minute)
	expression, _ := ncrontab.Parse(s.Cron)
	return schedule{s, expression}
}

// follow starts the slots of a schedule until ctx ends. A failed start is retried until it succeeds or its slot is
// older than CatchUp.
func (w *Worker) follow(ctx context.Context, s schedule) {
	for since := time.Now().Add(-s.CatchUp); ctx.Err() == nil; {
		slot, due := s.next(since, time.Now())
		switch {
		case slot.IsZero():
			w.log.WarnContext(ctx, "a schedule is never due again", "schedule", s.Name)
			return
		case !due:
			pause(ctx, time.Until(slot))
			continue
		}
		if err := w.startSlot(ctx, s, slot); err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "a slot of a schedule cannot be started: it is tried again", "schedule", s.Name, "slot", slot, "error", err.Error())
			pause(ctx, w.config.RetryDelay)
			continue
		}
		since = slot
	}
}

// next returns the slot to start: the latest that is due after since, within CatchUp, or else the next future one.
func (s schedule) next(since, now time.Time) (slot time.Time, due bool) {
	if earliest := now.Add(-s.CatchUp); since.Before(earliest) {
		since = earliest
	}
	slot = s.after(since)
	for !slot.IsZero() && !slot.After(now) {
		following := s.after(slot)
		if following.IsZero() || following.After(now) {
			return slot, true
		}
		slot = following
	}
	return slot, false
}

func (w *Worker) startSlot(ctx context.Context, s schedule, slot time.Time) error {
	id := s.Name + "-" + slot.UTC().Format(slotForm)
	_, err := w.runtime.Start(ctx, orchestrator.Start{ID: id, Orchestrator: s.Orchestrator, Input: s.Input})
	if errors.Is(err, orchestrator.ErrOtherWork) {
		w.log.InfoContext(ctx, "another process started a slot of a schedule with another input", "schedule", s.Name, "orchestrationId", id)
		return nil
	}
	if errors.Is(err, orchestrator.ErrExists) {
		w.log.ErrorContext(ctx, "a slot of a schedule is left out: its id is another orchestration's", "schedule", s.Name, "orchestrationId", id)
		return nil
	}
	return err
}
