package metrics

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/handler/api/fresh"
)

// LagFunc is how long something can have been wrong, as catalog.Catalog.RepairLag is it.
type LagFunc func(ctx context.Context) (time.Duration, error)

// CachedLag asks for the lag through lag, as Cached measures the outbox.
func CachedLag(lag LagFunc, maxAge time.Duration, now func() time.Time) LagFunc {
	if now == nil {
		now = time.Now
	}
	v := &fresh.Value[time.Duration]{Load: lag, Timeout: snapshotTimeout, MaxAge: cmp.Or(maxAge, DefaultMaxAge), Now: now}
	return v.Get
}

// ListRepair shows, in the process that has the lease, how far the repair of the list of orchestrations is behind. Call it
// before the first Scrape.
func (m *Metrics) ListRepair(lag LagFunc) { m.listLag = lag }

// repairs gives the gauge of the repair.
func (m *Metrics) repairs(ctx context.Context, r *prometheus.Registry) error {
	if m.listLag == nil {
		return nil
	}
	lag, err := m.listLag(ctx)
	if err != nil {
		return fmt.Errorf("collect metrics: %w", err)
	}
	gauge(r, "orchestrations_list_repair_lag_seconds", "How long something can have been wrong in the list of orchestrations: the age of the last pass of its repair that is done.", lag.Seconds())
	return nil
}
