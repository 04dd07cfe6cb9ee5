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
	// retentionTimer is the function of all retention jobs.
	retentionTimer = "retention-timer"
	// nightHour is the hour from which nightly jobs may begin, UTC.
	nightHour = 3

	retentionPartition = "retention"
	retentionRow       = "nights"
)

// retentions is the timer function, which runs every hour. Some of its jobs are hourly, the rest nightly: a row
// records for which night each job last ran, in any process. An unfinished job is due again in the next hour.
type retentions struct {
	tables  tables.Store
	now     func() time.Time
	hourly  []trigger.TimerHandler
	nightly []retention
}

// handle runs the due jobs, one after the other. A failure does not block the others.
func (r *retentions) handle(ctx context.Context, d trigger.TimerDelivery) error {
	var errs []error
	for _, job := range r.hourly {
		errs = append(errs, job(ctx, d))
	}
	return errors.Join(append(errs, r.night(ctx))...)
}

// night runs the jobs of the last night.
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

// lastNight returns the latest time at which a night's work could begin.
func lastNight(now time.Time) time.Time {
	now = now.UTC()
	night := time.Date(now.Year(), now.Month(), now.Day(), nightHour, 0, 0, 0, time.UTC)
	if night.After(now) {
		night = night.AddDate(0, 0, -1)
	}
	return night
}
