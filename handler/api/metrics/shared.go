package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/handler/api/fresh"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/outbox"
)

// snapshotTimeout bounds one measurement of the outbox, or one count of orchestrations.
const snapshotTimeout = 10 * time.Second

// Cached measures the outbox through snapshot, and again only when the last result is maxAge old (0 means DefaultMaxAge):
// for everything that shows it. nil for now means time.Now.
func Cached(snapshot SnapshotFunc, maxAge time.Duration, now func() time.Time) SnapshotFunc {
	if now == nil {
		now = time.Now
	}
	v := &fresh.Value[outbox.Snapshot]{Load: snapshot, Timeout: snapshotTimeout, MaxAge: cmp.Or(maxAge, DefaultMaxAge), Now: now}
	return v.Get
}

// CachedCensus counts the orchestrations through census, as Cached measures the outbox.
func CachedCensus(census CensusFunc, maxAge time.Duration, now func() time.Time) CensusFunc {
	if now == nil {
		now = time.Now
	}
	v := &fresh.Value[catalog.StatusCounts]{Load: census, Timeout: snapshotTimeout, MaxAge: cmp.Or(maxAge, DefaultMaxAge), Now: now}
	return v.Get
}

// shared are the metrics of one scrape that only the process with the lease has.
func (m *Metrics) shared(ctx context.Context) (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	if m.lease == nil || m.snapshot == nil {
		return r, nil
	}
	const leader, leaderHelp = "collector_leader", "Whether this process has the collector's lease and shows what all processes share."
	if !m.lease.Held(ctx) {
		gauge(r, leader, leaderHelp, 0)
		return r, nil
	}
	gauge(r, leader, leaderHelp, 1)
	s, err := m.snapshot(ctx)
	if err != nil {
		return r, errors.Join(fmt.Errorf("collect metrics: %w", err), m.states(ctx, r), m.damage(ctx, r), m.repairs(ctx, r), m.schedules(ctx, r), m.credentials(ctx, r))
	}
	gauge(r, "outbox_pending", "Messages that are not delivered yet.", float64(s.BacklogSize))
	gauge(r, "outbox_failed_pending", "Messages that are not delivered yet and have failed before.", float64(s.FailedPending))
	gauge(r, "outbox_dead", "Messages that were given up; each has a pending dead letter.", float64(s.Dead))
	gauge(r, "outbox_misconfigured", "Messages that wait for a signing key, a route or the like, and are not delivered yet.", float64(s.Misconfigured))
	gauge(r, "outbox_misconfigured_reported", "Those of them that have a pending dead letter.", float64(s.Reported))
	gauge(r, "outbox_oldest_pending_age_seconds", "Age of the oldest message that is not delivered yet; 0 without one.", s.OldestAgeSeconds)
	return r, errors.Join(m.states(ctx, r), m.damage(ctx, r), m.repairs(ctx, r), m.schedules(ctx, r), m.credentials(ctx, r))
}

// gauge gives one gauge.
func gauge(r *prometheus.Registry, name, help string, value float64) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	g.Set(value)
	r.MustRegister(g)
}
