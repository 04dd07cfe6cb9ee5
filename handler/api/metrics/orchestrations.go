package metrics

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
)

const (
	// maxOrchestrators bounds the orchestrators that a gauge has, those of the program apart; what is beyond counts for
	// otherOrchestrators.
	maxOrchestrators   = 50
	otherOrchestrators = "other"
)

// CensusFunc counts the orchestrations that are Stalled, and those that are Retrying.
type CensusFunc func(ctx context.Context) (catalog.StatusCounts, error)

// Orchestrations shows, in the process that has the lease, how many orchestrations are stalled or tried again, by
// orchestrator: those of the program always, others while they have one. Call it before the first Scrape.
func (m *Metrics) Orchestrations(census CensusFunc, orchestrators []string) {
	m.census, m.orchestrators = census, orchestrators
}

// Damaged shows, in the process that has the lease, how many orchestrations cannot be read. Call it before the first Scrape.
func (m *Metrics) Damaged(count func(ctx context.Context) (int, error)) { m.damaged = count }

// damage gives the gauge of those that cannot be read.
func (m *Metrics) damage(ctx context.Context, r *prometheus.Registry) error {
	if m.damaged == nil {
		return nil
	}
	n, err := m.damaged(ctx)
	if err != nil {
		return fmt.Errorf("collect metrics: %w", err)
	}
	gauge(r, "orchestrations_damaged", "Orchestrations that were met and cannot be read, up to 1,000.", float64(n))
	return nil
}

// states gives the gauges of a census.
func (m *Metrics) states(ctx context.Context, r *prometheus.Registry) error {
	if m.census == nil {
		return nil
	}
	census, err := m.census(ctx)
	if err != nil {
		return fmt.Errorf("collect metrics: %w", err)
	}
	for _, g := range []struct {
		status     orchestrator.Status
		name, help string
	}{
		{orchestrator.Stalled, "stalled", "Orchestrations whose code cannot go on until it is mended, up to 1,000."},
		{orchestrator.Retrying, "retrying", "Orchestrations of which an attempt failed and another one follows, up to 1,000."},
	} {
		gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Subsystem: "orchestrations", Name: g.name, Help: g.help}, []string{"orchestrator"})
		r.MustRegister(gauge)
		for _, name := range m.orchestrators {
			gauge.WithLabelValues(name).Set(0)
		}
		others := 0
		counts := census[g.status].ByOrchestrator
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if !slices.Contains(m.orchestrators, name) {
				if others++; others > maxOrchestrators {
					gauge.WithLabelValues(otherOrchestrators).Add(float64(counts[name]))
					continue
				}
			}
			gauge.WithLabelValues(name).Set(float64(counts[name]))
		}
	}
	return nil
}
