package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ListRepair exports, in the process that has the lease, the lag of the repair of the list of orchestrations, from
// catalog.Catalog.RepairLag.
func (m *Metrics) ListRepair(lag func(ctx context.Context) (time.Duration, error)) {
	share(m, lag, func(r *prometheus.Registry, lag time.Duration) {
		gauge(r, "orchestrations_list_repair_lag_seconds", "How long something can have been wrong in the list of orchestrations: the age of the last pass of its repair that is done.", lag.Seconds())
	})
}
