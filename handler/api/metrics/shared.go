package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/handler/api/fresh"
)

// loadTimeout bounds one read of storage.
const loadTimeout = 10 * time.Second

// Cached loads a value, and again only when the last one is maxAge old (0 means DefaultMaxAge): for all its users.
// nil for now means time.Now.
func Cached[T any](load func(ctx context.Context) (T, error), maxAge time.Duration, now func() time.Time) func(ctx context.Context) (T, error) {
	if now == nil {
		now = time.Now
	}
	v := &fresh.Value[T]{Load: load, Timeout: loadTimeout, MaxAge: cmp.Or(maxAge, DefaultMaxAge), Now: now}
	return v.Get
}

// source returns gauges of shared values.
type source func(ctx context.Context, r *prometheus.Registry) error

// share adds a source whose gauges are derived from a value, in the process that has the lease.
func share[T any](m *Metrics, load func(ctx context.Context) (T, error), show func(r *prometheus.Registry, value T)) {
	m.sources = append(m.sources, from(load, show))
}

// from makes a source from a value.
func from[T any](load func(ctx context.Context) (T, error), show func(r *prometheus.Registry, value T)) source {
	return func(ctx context.Context, r *prometheus.Registry) error {
		value, err := load(ctx)
		if err != nil {
			return fmt.Errorf("collect metrics: %w", err)
		}
		show(r, value)
		return nil
	}
}

// asked returns the metrics of one scrape that need storage: those of the process with the lease, and those of each
// process. All are read in parallel, and a failing one does not hide others.
func (m *Metrics) asked(ctx context.Context) (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	sources := m.local
	if m.lease != nil {
		leads := m.lease.Held(ctx)
		value := 0.0
		if leads {
			value, sources = 1, slices.Concat(m.local, m.sources)
		}
		gauge(r, "collector_leader", "Whether this process has the collector's lease and shows what all processes share.", value)
	}
	errs := make([]error, len(sources))
	var all sync.WaitGroup
	for i, collect := range sources {
		all.Go(func() { errs[i] = collect(ctx, r) })
	}
	all.Wait()
	return r, errors.Join(errs...)
}

// gauge adds one gauge.
func gauge(r *prometheus.Registry, name, help string, value float64) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	g.Set(value)
	r.MustRegister(g)
}

// gauges adds a gauge with labels.
func gauges(r *prometheus.Registry, name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	r.MustRegister(v)
	return v
}
