package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/poller"
)

// Pollers exports the counts of the pollers of this process, which counts returns by name. A second call returns an
// error.
func (m *Metrics) Pollers(counts func() map[string]poller.Counters) error {
	return m.registry.Register(pollerCollector{counts, pollerMetrics()})
}

// pollerMetric is one metric with a value for each poller.
type pollerMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// value returns false if the poller has no value.
	value func(poller.Counters) (float64, bool)
}

// pollerCollector reads all counters of a poller together, so that those of one scrape are consistent.
type pollerCollector struct {
	counts  func() map[string]poller.Counters
	metrics []pollerMetric
}

// Describe sends the metrics.
func (c pollerCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		ch <- m.desc
	}
}

// Collect sends their values.
func (c pollerCollector) Collect(ch chan<- prometheus.Metric) {
	for name, counts := range c.counts() {
		for _, m := range c.metrics {
			value, ok := m.value(counts)
			if !ok {
				continue
			}
			metric, err := prometheus.NewConstMetric(m.desc, m.kind, value, name)
			if err != nil {
				metric = prometheus.NewInvalidMetric(m.desc, err)
			}
			ch <- metric
		}
	}
}

func pollerMetrics() []pollerMetric {
	metric := func(kind prometheus.ValueType, name, help string, value func(poller.Counters) (float64, bool)) pollerMetric {
		return pollerMetric{prometheus.NewDesc(prometheus.BuildFQName(namespace, "poller", name), help, []string{"poller"}, nil), kind, value}
	}
	total := func(name, help string, of func(poller.Counters) int64) pollerMetric {
		return metric(prometheus.CounterValue, name, help, func(c poller.Counters) (float64, bool) { return float64(of(c)), true })
	}
	return []pollerMetric{
		total("rows_total", "Rows that were delivered and committed.", func(c poller.Counters) int64 { return c.Rows }),
		total("batches_total", "Batches that were delivered and committed.", func(c poller.Counters) int64 { return c.Batches }),
		total("quarantined_total", "Rows that were given up and went to the dead letters.", func(c poller.Counters) int64 { return c.Quarantined }),
		total("ticks_total", "Runs of the poller's timer, those that left the work to another process included.", func(c poller.Counters) int64 { return c.Ticks }),
		total("failures_total", "Runs that ended with an error.", func(c poller.Counters) int64 { return c.Failures }),
		total("leases_lost_total", "Leases that ended while the poller was at work.", func(c poller.Counters) int64 { return c.LeasesLost }),
		total("unconfirmed_total", "Rows that were delivered and are not known to be committed: they may be delivered twice.",
			func(c poller.Counters) int64 { return c.Unconfirmed }),
		metric(prometheus.GaugeValue, "lag_seconds", "Age of the last row when it was committed, 0 when there are no more; it stands still when the poller does. Absent while it is not known.",
			func(c poller.Counters) (float64, bool) { return c.Lag.Seconds(), c.Lag >= 0 }),
		metric(prometheus.GaugeValue, "last_success_timestamp_seconds", "When the poller last committed a batch or came to the end of its rows; 0 when this process has not seen that.",
			func(c poller.Counters) (float64, bool) { return unixSeconds(c.LastSuccess), true }),
		metric(prometheus.GaugeValue, "batch_size", "How many rows the next batch may have.",
			func(c poller.Counters) (float64, bool) { return float64(c.BatchSize), true }),
	}
}

// unixSeconds returns a time in Prometheus's form, 0 for none.
func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
