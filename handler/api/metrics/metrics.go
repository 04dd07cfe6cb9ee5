package metrics

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

const namespace = "roundhouse"

// DefaultMaxAge is the default age of Cached values.
const DefaultMaxAge = 10 * time.Second

// Metrics is the registry of a process. Make it with New, before its sources. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	outbox   outboxCounters
	failures prometheus.Counter
	// lease decides which process exports the sources, nil without Collect.
	lease   Lease
	sources []source
	// local returns gauges of this process.
	local []source
}

// Lease decides which process exports shared values.
type Lease interface {
	// Held reports whether this process holds the lease; it acquires or renews it, if possible.
	Held(ctx context.Context) bool
}

// New makes a registry with the metrics of the Go runtime and of the process.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), outbox: newOutboxCounters()}
	m.failures = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Name: "collector_failures_total", Help: "Scrapes for which storage could not be asked.",
	})
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m.failures)
	m.registry.MustRegister(m.outbox.all()...)
	return m
}

// Collect sets the lease of the process that exports values of storage. Call it, and all functions that add sources,
// before the first Scrape.
func (m *Metrics) Collect(lease Lease) { m.lease = lease }

// Build exports the version of the program, as a label of a metric that is 1. Call it once.
func (m *Metrics) Build(version string) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: "build_info", Help: "1, with the version of the program.",
		ConstLabels: prometheus.Labels{"version": version}}, func() float64 { return 1 }))
}

// Clock exports by how much the clock of storage is ahead of that of this process.
func (m *Metrics) Clock(skew func(ctx context.Context) (time.Duration, error)) {
	m.local = append(m.local, from(skew, func(r *prometheus.Registry, skew time.Duration) {
		gauge(r, "clock_skew_seconds", "By how much the clock of storage is ahead of that of this process, 0 within a second.", skew.Seconds())
	}))
}

// gather returns all metrics. failed is the error of storage, whose values are left out when it does not answer.
func (m *Metrics) gather(ctx context.Context) (families []*dto.MetricFamily, failed, err error) {
	r, failed := m.asked(ctx)
	if failed != nil {
		m.failures.Inc()
	}
	families, err = prometheus.Gatherers{m.registry, r}.Gather()
	if err != nil {
		return nil, failed, fmt.Errorf("gather metrics: %w", err)
	}
	return families, failed, nil
}

// Describe returns the names, labels and descriptions of all possible metrics of this process, including those
// without a value. It reads storage as a scrape does, and returns its error.
func (m *Metrics) Describe(ctx context.Context) ([]*prometheus.Desc, error) {
	r, err := m.asked(ctx)
	var all []*prometheus.Desc
	for _, registry := range []*prometheus.Registry{m.registry, r} {
		found := make(chan *prometheus.Desc)
		go func() {
			defer close(found)
			registry.Describe(found)
		}()
		for d := range found {
			all = append(all, d)
		}
	}
	return all, err
}

// Gather returns all metrics for a sender (prometheus.Gatherer). Late values of storage are left out, and counted in
// collector_failures_total.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	families, _, err := m.gather(ctx)
	return families, err
}

// Page is the answer to a scrape.
type Page struct {
	ContentType string
	Body        []byte
}

// Scrape returns all metrics, in the format of the request's headers. Late values of storage are left out, and
// counted in collector_failures_total; err reports that and comes with a complete page of the rest.
func (m *Metrics) Scrape(ctx context.Context, header http.Header) (Page, error) {
	families, failed, err := m.gather(ctx)
	if err != nil {
		return Page{}, err
	}
	format := expfmt.NegotiateAccept(header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	var b bytes.Buffer
	encoder := expfmt.NewEncoder(&b, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return Page{}, fmt.Errorf("encode metrics: %w", err)
		}
	}
	if closer, ok := encoder.(expfmt.Closer); ok { // the end of an OpenMetrics page
		if err := closer.Close(); err != nil {
			return Page{}, fmt.Errorf("encode metrics: %w", err)
		}
	}
	return Page{string(format), b.Bytes()}, failed
}
