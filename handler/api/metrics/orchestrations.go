package metrics

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

const (
	// maxOrchestrators bounds the foreign orchestrators of a gauge; further ones count as other.
	maxOrchestrators = 50
)

// Orchestrations exports, in the process that has the lease, the numbers of stalled and retried orchestrations, by
// orchestrator: those of the program always, others while they have one.
func (m *Metrics) Orchestrations(census func(ctx context.Context) (catalog.StatusCounts, error), orchestrators []string) {
	share(m, census, func(r *prometheus.Registry, counts catalog.StatusCounts) {
		stalled := gauges(r, "orchestrations_stalled", "Orchestrations whose code cannot go on until it is mended, up to 1,000.", "orchestrator")
		retrying := gauges(r, "orchestrations_retrying", "Orchestrations of which an attempt failed and another one follows, up to 1,000.", "orchestrator")
		byOrchestrator(stalled, counts[orchestrator.Stalled].ByOrchestrator, orchestrators)
		byOrchestrator(retrying, counts[orchestrator.Retrying].ByOrchestrator, orchestrators)
	})
}

// byOrchestrator sets a gauge for the orchestrators of the program, and for others while there are few.
func byOrchestrator(gauge *prometheus.GaugeVec, counts map[string]int, own []string) {
	for _, name := range own {
		gauge.WithLabelValues(name).Set(0)
	}
	others := 0
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if !slices.Contains(own, name) {
			if others++; others > maxOrchestrators {
				gauge.WithLabelValues(other).Add(float64(counts[name]))
				continue
			}
		}
		gauge.WithLabelValues(name).Set(float64(counts[name]))
	}
}

// Damaged exports, in the process that has the lease, the number of unreadable orchestrations.
func (m *Metrics) Damaged(count func(ctx context.Context) (int, error)) {
	share(m, count, func(r *prometheus.Registry, n int) {
		gauge(r, "orchestrations_damaged", "Orchestrations that were met and cannot be read, up to 1,000.", float64(n))
	})
}

// Idle exports, in the process that has the lease, the number of orchestrations that have neither ended nor
// continued for a long time.
func (m *Metrics) Idle(count func(ctx context.Context) (catalog.StatusCount, error)) {
	share(m, count, func(r *prometheus.Registry, c catalog.StatusCount) {
		gauge(r, "orchestrations_idle", "Orchestrations that have neither ended nor continued for ROUNDHOUSE_HEALTH_RUN_AGE, of 500 at most.", float64(c.Total()))
	})
}

// Overdue is what the sweeper is to look at.
type Overdue struct {
	Entries int
	Longest time.Duration
}

// Overdue exports, in the process that has the lease, the current work for the sweeper, from
// orchestrator.Runtime.Overdue.
func (m *Metrics) Overdue(count func(ctx context.Context) (Overdue, error)) {
	share(m, count, func(r *prometheus.Registry, o Overdue) {
		gauge(r, "orchestrations_overdue", "Orchestrations that the sweeper is to look at, because their time has come and nobody has driven them, up to 1,000.", float64(o.Entries))
		gauge(r, "orchestrations_overdue_seconds", "For how long the one of them is due that is furthest behind.", o.Longest.Seconds())
	})
}

// Tasks exports, in the process that has the lease, the numbers of human tasks.
func (m *Metrics) Tasks(count func(ctx context.Context) (tasks.Count, error)) {
	share(m, count, func(r *prometheus.Registry, c tasks.Count) {
		gauge(r, "tasks_open", "Human tasks that wait for an answer, up to 1,000.", float64(c.Open))
		gauge(r, "tasks_overdue", "Those of them whose due time has passed, up to 1,000.", float64(c.Overdue))
		gauge(r, "tasks_overdue_seconds", "By how much that one is overdue that is furthest behind.", c.LongestOverdue.Seconds())
	})
}
