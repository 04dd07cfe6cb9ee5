package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/api/fresh"
)

// LatenessFunc is how far schedules are behind, as schedule.Scheduler.Lateness is it.
type LatenessFunc func(ctx context.Context) (schedule.Lateness, error)

// CachedLateness asks how far schedules are behind, as Cached measures the outbox.
func CachedLateness(lateness LatenessFunc, now func() time.Time) LatenessFunc {
	if now == nil {
		now = time.Now
	}
	v := &fresh.Value[schedule.Lateness]{Load: lateness, Timeout: snapshotTimeout, MaxAge: DefaultMaxAge, Now: now}
	return v.Get
}

// Schedules shows, in the process that has the lease, how far schedules are behind. Call it before the first Scrape.
func (m *Metrics) Schedules(lateness LatenessFunc) { m.lateness = lateness }

// schedules gives the gauges of the schedules.
func (m *Metrics) schedules(ctx context.Context, r *prometheus.Registry) error {
	if m.lateness == nil {
		return nil
	}
	l, err := m.lateness(ctx)
	if err != nil {
		return fmt.Errorf("collect metrics: %w", err)
	}
	gauge(r, "schedules_overdue", "Items of schedules that are due and were not sent.", float64(l.Late))
	gauge(r, "schedules_failing", "Those of them that could not be sent.", float64(l.Failing))
	gauge(r, "schedules_delay_seconds", "How long the item is overdue that is furthest behind.", l.Longest.Seconds())
	return nil
}
