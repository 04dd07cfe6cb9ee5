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
	// scope is the instrumentation scope of all spans.
	scope = "github.com/vibedata/roundhouse"
	// queueSize is how many spans wait for the exporter: a run of some thousand calls ends at once.
	queueSize = 20_000
)

// Config says where traces go. Without an Endpoint and an Exporter there are none.
type Config struct {
	// Endpoint is the address to which OTLP over HTTP is posted, with its path, such as http://localhost:4318/v1/traces.
	Endpoint string
	// Headers go with each request. They may be secrets.
	Headers map[string]string
	// Exporter takes the place of Endpoint, for tests.
	Exporter sdktrace.SpanExporter
	// Ratio is the share of the traces that begin here and are recorded, 0 to 1. A trace that began elsewhere is recorded if its
	// sender says so.
	Ratio float64
	// Attributes describe the process.
	Attributes []attribute.KeyValue
}

// Tracer makes spans. It is an orchestrator.Tracer. Make it with New.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
	told     chan span // that are to be made: who drives an orchestration does not wait for it
	closing  sync.Once
	made     chan struct{} // closed when all are
}

var _ orchestrator.Tracer = (*Tracer)(nil)

// New makes a Tracer, nil when there is nowhere to send traces. The standard settings of the SDK hold for what Config does
// not say: limits, time-outs, compression, certificates and sizes of batches.
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
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithResource(about)) // contexts say what is sampled
	t := &Tracer{provider: provider, tracer: provider.Tracer(scope), sampler: sdktrace.TraceIDRatioBased(c.Ratio),
		told: make(chan span, queueSize), made: make(chan struct{})}
	go t.makeSpans()
	return t, nil
}

// Close sends what waits, and ends the exporter.
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

// Begin begins the trace of a correlation id, with the creation of an orchestration.
func (t *Tracer) Begin(orchestration, correlationID string) string {
	id := traceID(correlationID)
	if correlationID == "" {
		id = traceID("\n" + orchestration)
	}
	c := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: spanID(id, createSpan(orchestration))})
	decided := t.sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: id})
	return Format(c.WithTraceFlags(c.TraceFlags().WithSampled(decided.Decision == sdktrace.RecordAndSample)))
}

// Current is the trace context of ctx.
func (t *Tracer) Current(ctx context.Context) string {
	return Format(trace.SpanContextFromContext(ctx))
}

// Within is the trace context of a span of a trace. For a text that is no trace context it is that text.
func (t *Tracer) Within(traceparent, name string) string {
	c, ok := Parse(traceparent)
	if !ok || !c.IsSampled() {
		return traceparent
	}
	return Format(within(c, name))
}

// Run takes the rounds of an execution, if its trace is sampled.
func (t *Tracer) Run(x orchestrator.TracedExecution) orchestrator.RunTracer {
	c, ok := Parse(x.Trace)
	if !ok || !c.IsSampled() {
		return nil
	}
	return newRun(t.tell, x, c)
}

// Activity lets an activity work in the context of its attempt, so that the spans that it makes are below it.
func Activity(a orchestrator.AnyActivity) orchestrator.AnyActivity {
	return orchestrator.Around(a, func(ctx context.Context, _ json.RawMessage, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
		if c, ok := Parse(orchestrator.Info(ctx).Trace); ok {
			ctx = trace.ContextWithRemoteSpanContext(ctx, c)
		}
		return next(ctx)
	})
}
