// Package metricpush sends the metrics of the program by OTLP over HTTP, where scraping is impossible: an app that
// scales to zero has no process to scrape.
//
// It sends every metric of the Prometheus page, with the same names, labels and units, once in every interval, and
// once more when the program leaves. Failed messages are not kept: counters are cumulative, so the next message has
// them. A receiver that does not answer delays nothing.
//
// The package owns no storage keys. It starts one goroutine, which Close ends.
package metricpush

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
)

// Defaults of Config, from the specification of OpenTelemetry, except for the timeout, which is shorter: the program
// leaves within seconds.
const (
	DefaultInterval = time.Minute
	DefaultTimeout  = 10 * time.Second
	DefaultService  = "roundhouse"
)

// Config configures the receiver and the sender's attributes.
type Config struct {
	// Endpoint is the whole address of the receiver, with its path, such as https://collector:4318/v1/metrics; ""
	// sends nothing.
	Endpoint string
	// Headers are sent with each message: keys, for example.
	Headers map[string]string
	// Interval is the interval of the messages, Timeout bounds a message; 0 means their defaults.
	Interval, Timeout time.Duration
	// Attributes describe the program in addition to its name, version and instance.
	Attributes map[string]string
	// Service, Version and Instance name the program, "" for Service means DefaultService.
	Service, Version, Instance string
}

// Pusher sends metrics. The zero value sends nothing. Its methods are safe for concurrent use.
type Pusher struct {
	config Config
	gather prometheus.Gatherer
	log    *slog.Logger

	mu       sync.Mutex
	provider *metric.MeterProvider
	closed   bool
}

// New makes a Pusher of gathered metrics. It sends nothing before Start.
func New(c Config, gather prometheus.Gatherer, log *slog.Logger) *Pusher {
	c.Interval, c.Timeout, c.Service = cmp.Or(c.Interval, DefaultInterval), cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.Service, DefaultService)
	return &Pusher{config: c, gather: gather, log: log}
}

// Start starts sending. Without an endpoint, after Close and after a first call, it does nothing. It does not use the
// network.
func (p *Pusher) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.config.Endpoint == "" || p.provider != nil || p.closed {
		return nil
	}
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(p.config.Endpoint), otlpmetrichttp.WithHeaders(p.config.Headers),
		otlpmetrichttp.WithTimeout(p.config.Timeout), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	if err != nil {
		return fmt.Errorf("send metrics to %s: %w", p.config.Endpoint, err)
	}
	reader := metric.NewPeriodicReader(told{exporter, p.log}, metric.WithInterval(p.config.Interval), metric.WithTimeout(p.config.Timeout),
		metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(p.gather))))
	p.provider = metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(p.resource()))
	return nil
}

// resource returns the sender's attributes.
func (p *Pusher) resource() *resource.Resource {
	c := p.config
	all := []attribute.KeyValue{}
	for name, value := range c.Attributes {
		all = append(all, attribute.String(name, value))
	}
	for name, value := range map[string]string{"service.name": c.Service, "service.version": c.Version, "service.instance.id": c.Instance} {
		if value != "" {
			all = append(all, attribute.String(name, value))
		}
	}
	return resource.NewSchemaless(all...)
}

// Close sends the current metrics, and nothing after that; ctx bounds it. It may be repeated.
func (p *Pusher) Close(ctx context.Context) error {
	p.mu.Lock()
	provider := p.provider
	p.provider, p.closed = nil, true
	p.mu.Unlock()
	if provider == nil {
		return nil
	}
	if err := provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last metrics: %w", err)
	}
	return nil
}

// told is an exporter that logs its failures: the SDK would write them to standard error. It also fixes the bridge's
// exemplars.
type told struct {
	metric.Exporter
	log *slog.Logger
}

// Export sends metrics, and logs failures.
func (t told) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	for _, scope := range m.ScopeMetrics {
		for _, one := range scope.Metrics {
			if h, ok := one.Data.(metricdata.Histogram[float64]); ok {
				decodeTraces(h)
			}
		}
	}
	if err := t.Exporter.Export(ctx, m); err != nil {
		t.log.WarnContext(ctx, "metrics are not sent", "error", err.Error())
	}
	return nil
}

// decodeTraces decodes the trace ids that the bridge passes on as text: OTLP has them in binary.
func decodeTraces(h metricdata.Histogram[float64]) {
	for _, point := range h.DataPoints {
		for i, e := range point.Exemplars {
			if id, err := trace.TraceIDFromHex(string(e.TraceID)); err == nil {
				point.Exemplars[i].TraceID = id[:]
			}
		}
	}
}
