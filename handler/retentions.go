package handler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const (
	// retentionTimer is the function of all that deletes what was kept long enough.
	retentionTimer = "retention-timer"
	// nightHour is when what is done once a night may begin, UTC.
	nightHour = 3

	retentionPartition = "retention"
	retentionRow       = "nights"
)

// retentions is the timer function, which runs every hour. Some of what it does is due every hour, the rest once a night: a row says
// for which night each job was last done, in whatever process. What does not come to its end is due again in the next hour.
type retentions struct {
	tables  tables.Store
	now     func() time.Time
	hourly  []trigger.TimerHandler
	nightly []retention
}

// handle does what is due, one after the other. What fails keeps nothing else from being done.
func (r *retentions) handle(ctx context.Context, d trigger.TimerDelivery) error {
	var errs []error
	for _, job := range r.hourly {
		errs = append(errs, job(ctx, d))
	}
	return errors.Join(append(errs, r.night(ctx))...)
}

// night does what is due for the last night.
func (r *retentions) night(ctx context.Context) error {
	key := tables.Key{Partition: retentionPartition, Row: retentionRow}
	done, err := r.tables.Get(ctx, hostlock.DefaultTable, key)
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return fmt.Errorf("read which retention was done: %w", err)
	}
	night, next := lastNight(r.now()), map[string]any{}
	var errs []error
	worked := false
	for _, job := range r.nightly {
		column := strings.ReplaceAll(job.job, "-", "_")
		last := done.Time(column)
		if last.Before(night) && ctx.Err() == nil {
			complete, err := job.run(ctx)
			if errs = append(errs, err); complete {
				last, worked = night, true
			}
		}
		if !last.IsZero() {
			next[column] = last
		}
	}
	if worked {
		if err := r.tables.Apply(context.WithoutCancel(ctx), hostlock.DefaultTable, tables.Upsert(tables.Entity{Key: key, Properties: next})); err != nil {
			errs = append(errs, fmt.Errorf("note which retention was done: %w", err))
		}
	}
	return errors.Join(errs...)
}

// lastNight is the latest time at which a night's work could begin.
func lastNight(now time.Time) time.Time {
	now = now.UTC()
	night := time.Date(now.Year(), now.Month(), now.Day(), nightHour, 0, 0, 0, time.UTC)
	if night.After(now) {
		night = night.AddDate(0, 0, -1)
	}
	return night
}
