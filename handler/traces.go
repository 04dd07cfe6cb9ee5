package handler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/traceparent"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tracing"
)

// tracesTime bounds the wait of a stopping program for sending its traces.
const tracesTime = 3 * time.Second

// openTraces makes the tracer of the settings, nil for none.
func openTraces(s settings.Tracing, node, version string) (*tracing.Tracer, error) {
	return tracing.New(context.Background(), tracing.Config{Endpoint: s.Endpoint, Headers: s.Headers, Ratio: s.Ratio, Attributes: []attribute.KeyValue{
		attribute.String("service.name", s.Service), attribute.String("service.version", version), attribute.String("service.instance.id", node)}})
}

// wireTraces makes the exporter of traces.
func (p *parts) wireTraces() (err error) {
	p.traces, err = openTraces(p.settings.Tracing, p.node.Name(), builtFrom())
	if p.traces != nil {
		// The SDK has a global handler, which would write to standard error, where the host looks for the error that
		// ended the program.
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { p.log.Warn("traces are not sent", "error", err.Error()) }))
	}
	return err
}

// closeTraces sends the remaining traces.
func (p *parts) closeTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), tracesTime)
	defer cancel()
	if err := p.traces.Close(ctx); err != nil {
		p.log.Warn("the last traces are lost", "error", err.Error())
	}
}

// traced runs the activities of a configuration in the contexts of their attempts, and records spans of the runtime.
func traced(c *orchestrator.Config, t *tracing.Tracer) {
	if t == nil {
		return
	}
	c.Tracer = t
	for i, a := range c.Activities {
		c.Activities[i] = tracing.Activity(a)
	}
}

// tellDelivery records a span for the delivery of an engine's message.
func tellDelivery(t *tracing.Tracer) func(context.Context, engine.Settled) {
	return func(_ context.Context, s engine.Settled) {
		if t == nil || s.DequeueCount == 0 {
			return
		}
		creation := t.Creation(s.Trace, s.OrchestrationID, s.CorrelationID)
		l := tracing.Leaf{Name: "process " + s.Queue, Kind: trace.SpanKindConsumer, Parent: creation, Key: fmt.Sprintf("delivery/%s/%d/%d", s.MessageID, s.Attempt, s.DequeueCount),
			Begin: s.Began, End: s.Began.Add(s.Took), Err: s.Cause, Attributes: []attribute.KeyValue{
				attribute.String("messaging.system", "azure_storage_queue"), attribute.String("messaging.operation.type", "process"),
				attribute.String("messaging.destination.name", s.Queue), attribute.String("messaging.message.id", s.MessageID),
				attribute.String("faas.trigger", "pubsub"), attribute.String("roundhouse.engine", s.Engine), attribute.String("roundhouse.fate", string(s.Fate)),
				attribute.String("roundhouse.correlation_id", s.CorrelationID), attribute.Int("roundhouse.attempt", s.Attempt)}}
		if s.Fate == engine.DeadLettered { // it may have no run
			l.Parent, l.Link = s.Trace, creation
		}
		t.Tell(l)
	}
}

// observers calls several observers with the same delivery.
func observers(all ...func(context.Context, engine.Settled)) func(context.Context, engine.Settled) {
	return func(ctx context.Context, s engine.Settled) {
		for _, observe := range all {
			observe(ctx, s)
		}
	}
}

// tracedTimers records spans for the occurrences of timers with work.
func tracedTimers(timers map[string]trigger.Timer, t *tracing.Tracer) {
	if t == nil {
		return
	}
	for name, timer := range timers {
		handle := timer.Handle
		timer.Handle = func(ctx context.Context, d trigger.TimerDelivery) error {
			ctx, open := t.Open(ctx, "")
			err := handle(ctx, d)
			if !errors.Is(err, trigger.ErrIdle) {
				open.End("timer "+name, trace.SpanKindServer, err, attribute.String("faas.trigger", "timer"), attribute.String("faas.name", name))
			}
			return err
		}
		timers[name] = timer
	}
}

// tracedTransport records spans for deliveries of events.
type tracedTransport struct {
	outbox.Transport
	name   string
	tracer *tracing.Tracer
}

// Deliver delivers the event in the context in which it was published.
func (d tracedTransport) Deliver(ctx context.Context, e outbox.Event) error {
	began := time.Now()
	err := d.Transport.Deliver(ctx, e)
	d.tracer.Tell(tracing.Leaf{Name: "deliver " + d.name, Kind: trace.SpanKindClient, Parent: traceparent.Clean(e.TraceParent), Key: fmt.Sprintf("delivery/%s/%d", e.ID, e.Attempt),
		Begin: began, End: time.Now(), Err: err, Attributes: []attribute.KeyValue{attribute.String("messaging.system", "roundhouse_outbox"),
			attribute.String("messaging.operation.type", "send"), attribute.String("messaging.destination.name", d.name), attribute.String("messaging.message.id", e.ID),
			attribute.Int("roundhouse.attempt", e.Attempt)}})
	return err
}

// traced records spans for the deliveries to all destinations.
func (t transports) traced(tracer *tracing.Tracer) {
	if tracer == nil {
		return
	}
	for name, to := range t.destinations {
		t.destinations[name] = tracedTransport{to, name, tracer}
	}
}

// traceRequests records a caller's trace context, and spans for requests to the API. Probes and scrapes get no span.
func traceRequests(t *tracing.Tracer) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			sent := traceparent.Clean(r.Header.Get("traceparent"))
			ctx, open := t.Open(traceparent.With(r.Context(), sent), sent)
			c.SetRequest(r.WithContext(ctx))
			err := next(c)
			route := c.Path()
			if open == nil || !strings.HasPrefix(route, "/api/") || strings.HasPrefix(route, "/api/health") || route == "/api/metrics" {
				return err
			}
			status := c.Response().Status
			if h := (*echo.HTTPError)(nil); errors.As(err, &h) {
				status = h.Code
			}
			var failure error
			if status >= 500 {
				failure = fmt.Errorf("status %d", status)
			}
			open.End(r.Method+" "+route, trace.SpanKindServer, failure, attribute.String("http.request.method", r.Method), attribute.String("http.route", route),
				attribute.Int("http.response.status_code", status), attribute.String("faas.trigger", "http"))
			return err
		}
	}
}
