package tracing

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/vibedata/roundhouse/internal/redact"
)

// span is an ended span.
type span struct {
	name       string
	kind       trace.SpanKind
	context    trace.SpanContext
	parent     trace.SpanID // of the same trace; zero for none
	links      []trace.SpanContext
	begin, end time.Time
	failure    string // "" for none
	attributes []attribute.KeyValue
}

// maxLinks is the most links of a span; the number of events is unbounded.
const maxLinks = 100

// tell queues a span without waiting. When the queue is full, it drops the span, as the exporter does.
func (t *Tracer) tell(s span) {
	select {
	case t.told <- s:
	default:
	}
}

// makeSpans makes spans until an empty one reports that the Tracer is closed.
func (t *Tracer) makeSpans() {
	defer close(t.made)
	for s := range t.told {
		if s.name == "" {
			return
		}
		t.make(s)
	}
}

// make hands a span to the exporter.
func (t *Tracer) make(s span) {
	ctx := context.WithValue(context.Background(), idsKey{}, s.context)
	options := []trace.SpanStartOption{trace.WithTimestamp(s.begin), trace.WithSpanKind(s.kind), trace.WithAttributes(s.attributes...)}
	if s.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, s.context.WithSpanID(s.parent))
	} else {
		options = append(options, trace.WithNewRoot())
	}
	for _, l := range s.links[:min(len(s.links), maxLinks)] {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: l}))
	}
	_, out := t.tracer.Start(ctx, s.name, options...)
	if s.failure != "" {
		out.SetStatus(codes.Error, s.failure)
	}
	out.End(trace.WithTimestamp(maxTime(s.begin, s.end)))
}

// maxFailure bounds the error text of a span, in bytes.
const maxFailure = 300

// failureText redacts and cuts an error text and makes it valid UTF-8, because one invalid text fails a whole batch.
func failureText(text string) string {
	text = redact.Text(text)
	return strings.ToValidUTF8(text[:min(len(text), maxFailure)], "")
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

type idsKey struct{}

// ids returns the ids that the contexts of spans name.
type ids struct{}

// NewIDs returns the ids of a span without a parent.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if c, ok := ctx.Value(idsKey{}).(trace.SpanContext); ok {
		return c.TraceID(), c.SpanID()
	}
	var t trace.TraceID
	_, _ = rand.Read(t[:]) // it never fails
	return t, randomSpanID()
}

// NewSpanID returns the id of a span with a parent.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if c, ok := ctx.Value(idsKey{}).(trace.SpanContext); ok {
		return c.SpanID()
	}
	return randomSpanID()
}

func randomSpanID() (id trace.SpanID) {
	_, _ = rand.Read(id[:])
	return id
}
