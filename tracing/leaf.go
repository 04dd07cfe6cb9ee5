package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Leaf is a span of this process without children, because it is lost when the process dies.
type Leaf struct {
	Name string
	Kind trace.SpanKind
	// Parent is the trace context that the span belongs to; without it, the span is a root in the trace of Link. A Leaf of
	// an unsampled trace is not exported.
	Parent string
	// Key names the span within its trace, so that its id is always the same.
	Key string
	// Link is the trace context of a related span, "" for none.
	Link       string
	Begin, End time.Time
	// Err is the reason of a failure, nil for success.
	Err        error
	Attributes []attribute.KeyValue
}

// Tell exports a leaf. On a nil Tracer it does nothing.
func (t *Tracer) Tell(l Leaf) {
	if t == nil {
		return
	}
	parent, below := Parse(l.Parent)
	link, linked := Parse(l.Link)
	in := parent
	if !below {
		in = link
	}
	if !in.IsSampled() {
		return
	}
	s := span{name: l.Name, kind: l.Kind, context: within(in, l.Key), parent: parent.SpanID(), begin: l.Begin, end: l.End, attributes: l.Attributes}
	if linked {
		s.links = []trace.SpanContext{link}
	}
	if l.Err != nil {
		s.failure = failureText(l.Err.Error())
	}
	t.tell(s)
}

// Creation returns the trace context of an orchestration's creation span, given the context of the start request, ""
// for none.
func (t *Tracer) Creation(started, orchestration, correlationID string) string {
	if t == nil {
		return started
	}
	if started == "" {
		return t.Begin(orchestration, correlationID)
	}
	return t.Within(started, createSpan(orchestration))
}

// Open starts a span of this process in the returned context; End exports it. The span continues the caller's trace
// context, or else starts a trace.
func (t *Tracer) Open(ctx context.Context, sent string) (context.Context, *Open) {
	if t == nil {
		return ctx, nil
	}
	o := &Open{tracer: t, begin: time.Now()}
	parent, ok := Parse(sent)
	if ok {
		o.parent, o.context = parent.SpanID(), parent.WithSpanID(randomSpanID()).WithRemote(false)
	} else {
		traceID, id := ids{}.NewIDs(context.Background())
		decided := t.sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: traceID})
		o.context = trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: id,
			TraceFlags: trace.TraceFlags(0).WithSampled(decided.Decision == sdktrace.RecordAndSample)})
	}
	return trace.ContextWithSpanContext(ctx, o.context), o
}

// Open is a started span.
type Open struct {
	tracer  *Tracer
	context trace.SpanContext
	parent  trace.SpanID
	begin   time.Time
}

// End exports the span. On nil it does nothing.
func (o *Open) End(name string, kind trace.SpanKind, err error, attributes ...attribute.KeyValue) {
	if o == nil || !o.context.IsSampled() {
		return
	}
	s := span{name: name, kind: kind, context: o.context, parent: o.parent, begin: o.begin, end: time.Now(), attributes: attributes}
	if err != nil {
		s.failure = failureText(err.Error())
	}
	o.tracer.tell(s)
}
