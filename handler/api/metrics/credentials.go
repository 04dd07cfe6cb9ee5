package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Waiting shows, in the process that has the lease, how many credentials wait for their consumers, by engine: those that rotate,
// always. Call it before the first Scrape.
func (m *Metrics) Waiting(count func(ctx context.Context) (map[string]int, error), engines []string) {
	m.waiting, m.rotating = count, engines
}

// credentials gives the gauge of those that wait.
func (m *Metrics) credentials(ctx context.Context, r *prometheus.Registry) error {
	if m.waiting == nil {
		return nil
	}
	counts, err := m.waiting(ctx)
	if err != nil {
		return fmt.Errorf("collect metrics: %w", err)
	}
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "credentials_waiting",
		Help: "Keys and passwords whose older version is not retired, because a new one has not arrived at everybody."}, []string{"engine"})
	r.MustRegister(gauge)
	for _, engine := range m.rotating {
		gauge.WithLabelValues(engine).Set(float64(counts[engine]))
	}
	return nil
}
