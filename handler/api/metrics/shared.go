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

// loadTimeout bounds one look at what storage holds.
const loadTimeout = 10 * time.Second

// Cached asks for a value through load, and again only when the last answer is maxAge old (0 means DefaultMaxAge): for everything that
// shows it. nil for now means time.Now.
func Cached[T any](load func(ctx context.Context) (T, error), maxAge time.Duration, now func() time.Time) func(ctx context.Context) (T, error) {
	if now == nil {
		now = time.Now
	}
	v := &fresh.Value[T]{Load: load, Timeout: loadTimeout, MaxAge: cmp.Or(maxAge, DefaultMaxAge), Now: now}
	return v.Get
}

// source gives gauges of what all processes share.
type source func(ctx context.Context, r *prometheus.Registry) error

// share adds a source whose gauges are made of a value, in the process that has the lease.
func share[T any](m *Metrics, load func(ctx context.Context) (T, error), show func(r *prometheus.Registry, value T)) {
	m.sources = append(m.sources, from(load, show))
}

// from makes a source of a value.
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

// asked are the metrics of one scrape that storage is asked for: what only the process with the lease shows, and what each shows of
// itself. All is asked for at the same time, and what does not answer keeps nothing else away.
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

// gauge gives one gauge.
func gauge(r *prometheus.Registry, name, help string, value float64) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	g.Set(value)
	r.MustRegister(g)
}

// gauges gives a gauge with labels.
func gauges(r *prometheus.Registry, name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	r.MustRegister(v)
	return v
}
