package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/engine/schedule"
)

// Schedules exports, in the process that has the lease, the delay of schedules.
func (m *Metrics) Schedules(lateness func(ctx context.Context) (schedule.Lateness, error)) {
	share(m, lateness, func(r *prometheus.Registry, l schedule.Lateness) {
		gauge(r, "schedules_overdue", "Items of schedules that are due and were not sent.", float64(l.Late))
		gauge(r, "schedules_failing", "Those of them that could not be sent.", float64(l.Failing))
		gauge(r, "schedules_delay_seconds", "How long the item is overdue that is furthest behind.", l.Longest.Seconds())
	})
}
