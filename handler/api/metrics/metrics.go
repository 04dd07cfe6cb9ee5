package metrics

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/vibedata/roundhouse/outbox"
)

const namespace = "roundhouse"

// DefaultMaxAge is how old what Cached gives may be when it is not told.
const DefaultMaxAge = 10 * time.Second

// Metrics is the registry of a process. Make it with New, before what it observes. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	outbox   outboxCounters
	// shared are what storage knows, nil without Collect.
	lease    Lease
	snapshot SnapshotFunc
	failures prometheus.Counter
	// census counts orchestrations, nil without Orchestrations.
	census        CensusFunc
	orchestrators []string
	// damaged counts those that cannot be read, nil without Damaged.
	damaged func(ctx context.Context) (int, error)
	// waiting counts credentials that wait for consumers, by engine, nil without Waiting; rotating are the engines.
	waiting  func(ctx context.Context) (map[string]int, error)
	rotating []string
	// listLag is that of the repair of the list, nil without ListRepair.
	listLag LagFunc
	// lateness is that of the schedules, nil without Schedules.
	lateness LatenessFunc
}

// SnapshotFunc measures the outbox.
type SnapshotFunc func(ctx context.Context) (outbox.Snapshot, error)

// Lease says which process speaks for what all share.
type Lease interface {
	// Held says whether this process does at the moment; it takes the lease, or renews it, if it can.
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

// Collect shows what storage holds of the outbox, in the process that has the lease. Call it before the first Scrape.
func (m *Metrics) Collect(lease Lease, snapshot SnapshotFunc) {
	m.lease, m.snapshot = lease, snapshot
}

// Page is the answer to a scrape.
type Page struct {
	ContentType string
	Body        []byte
}

// Scrape gives everything, in the format that the request's headers ask for. What storage is asked for is left out when it
// does not answer, and counted in collector_failures_total; err is about that and comes with a complete page of the rest.
func (m *Metrics) Scrape(ctx context.Context, header http.Header) (Page, error) {
	shared, failed := m.shared(ctx)
	if failed != nil {
		m.failures.Inc()
	}
	families, err := prometheus.Gatherers{m.registry, shared}.Gather()
	if err != nil {
		return Page{}, fmt.Errorf("gather metrics: %w", err)
	}
	format := expfmt.NegotiateAccept(header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	var b bytes.Buffer
	encoder := expfmt.NewEncoder(&b, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return Page{}, fmt.Errorf("encode metrics: %w", err)
		}
	}
	if closer, ok := encoder.(expfmt.Closer); ok { // what ends a page of OpenMetrics
		if err := closer.Close(); err != nil {
			return Page{}, fmt.Errorf("encode metrics: %w", err)
		}
	}
	return Page{string(format), b.Bytes()}, failed
}
