package tracing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	scope = "github.com/vibedata/roundhouse"
	// queueSize is the most spans that wait for the exporter: a run of some thousand calls ends all of them together.
	queueSize = 20_000
)

// Config configures the export of traces. Without an Endpoint and an Exporter, tracing is off.
type Config struct {
	// Endpoint is the address to which OTLP over HTTP is posted, with its path, such as http://localhost:4318/v1/traces.
	Endpoint string
	// Headers go with each request. They may be secrets.
	Headers map[string]string
	// Exporter replaces Endpoint, for tests.
	Exporter sdktrace.SpanExporter
	// Ratio is the share of the traces started here that are recorded, 0 to 1. A trace that started elsewhere is recorded
	// if its sender says so.
	Ratio float64
	// Attributes describe the process.
	Attributes []attribute.KeyValue
}

// Tracer makes spans. It is an orchestrator.Tracer. Make it with New.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
	told     chan span // spans to make: the driver of an orchestration does not wait for them
	closing  sync.Once
	made     chan struct{} // closed when all are made
}

var _ orchestrator.Tracer = (*Tracer)(nil)

// New makes a Tracer, nil without an endpoint or exporter. The standard settings of the SDK apply to everything else:
// limits, timeouts, compression, certificates and batch sizes.
func New(ctx context.Context, c Config) (*Tracer, error) {
	if c.Endpoint == "" && c.Exporter == nil {
		return nil, nil
	}
	if math.IsNaN(c.Ratio) || c.Ratio < 0 || c.Ratio > 1 {
		return nil, fmt.Errorf("tracing: the ratio of traces is 0 to 1, not %v", c.Ratio)
	}
	exporter := c.Exporter
	if exporter == nil {
		options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(c.Endpoint)}
		if len(c.Headers) > 0 {
			options = append(options, otlptracehttp.WithHeaders(c.Headers))
		}
		var err error
		if exporter, err = otlptracehttp.New(ctx, options...); err != nil {
			return nil, fmt.Errorf("tracing: make the exporter: %w", err)
		}
	}
	about, err := resource.Merge(resource.Environment(), resource.NewSchemaless(c.Attributes...))
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("tracing: describe the process: %w", err)
	}
	var batches []sdktrace.BatchSpanProcessorOption
	if os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE") == "" {
		batches = append(batches, sdktrace.WithMaxQueueSize(queueSize))
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter, batches...), sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithResource(about)) // contexts decide it
	t := &Tracer{provider: provider, tracer: provider.Tracer(scope), sampler: sdktrace.TraceIDRatioBased(c.Ratio),
		told: make(chan span, queueSize), made: make(chan struct{})}
	go t.makeSpans()
	return t, nil
}

// Close exports the queued spans and shuts down the exporter.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.closing.Do(func() {
		select {
		case t.told <- span{}:
		case <-ctx.Done():
		}
	})
	select {
	case <-t.made:
	case <-ctx.Done():
	}
	return t.provider.Shutdown(ctx)
}

// Begin starts the trace of a correlation id, with the creation of an orchestration.
func (t *Tracer) Begin(orchestration, correlationID string) string {
	id := traceID(correlationID)
	if correlationID == "" {
		id = traceID("\n" + orchestration)
	}
	c := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: spanID(id, createSpan(orchestration))})
	decided := t.sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: id})
	return Format(c.WithTraceFlags(c.TraceFlags().WithSampled(decided.Decision == sdktrace.RecordAndSample)))
}

// Current returns the trace context of ctx.
func (t *Tracer) Current(ctx context.Context) string {
	return Format(trace.SpanContextFromContext(ctx))
}

// Within returns the trace context of a named span in a trace. It returns an invalid trace context unchanged.
func (t *Tracer) Within(traceparent, name string) string {
	c, ok := Parse(traceparent)
	if !ok || !c.IsSampled() {
		return traceparent
	}
	return Format(within(c, name))
}

// Run returns the tracer of an execution's rounds, if its trace is sampled.
func (t *Tracer) Run(x orchestrator.TracedExecution) orchestrator.RunTracer {
	c, ok := Parse(x.Trace)
	if !ok || !c.IsSampled() {
		return nil
	}
	return newRun(t.tell, x, c)
}

// Activity runs an activity in the context of its attempt, so that its spans are children of the attempt.
func Activity(a orchestrator.AnyActivity) orchestrator.AnyActivity {
	return orchestrator.Around(a, func(ctx context.Context, _ json.RawMessage, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
		if c, ok := Parse(orchestrator.Info(ctx).Trace); ok {
			ctx = trace.ContextWithRemoteSpanContext(ctx, c)
		}
		return next(ctx)
	})
}
