package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ListRepair shows, in the process that has the lease, how far the repair of the list of orchestrations is behind, as
// catalog.Catalog.RepairLag is it.
func (m *Metrics) ListRepair(lag func(ctx context.Context) (time.Duration, error)) {
	share(m, lag, func(r *prometheus.Registry, lag time.Duration) {
		gauge(r, "orchestrations_list_repair_lag_seconds", "How long something can have been wrong in the list of orchestrations: the age of the last pass of its repair that is done.", lag.Seconds())
	})
}
