package tracing

import (
	"crypto/sha256"
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"

	"github.com/vibedata/roundhouse/internal/traceparent"
)

// Parse reads a W3C traceparent; ok is false for an invalid one.
func Parse(text string) (c trace.SpanContext, ok bool) {
	if text = traceparent.Clean(text); text == "" {
		return c, false
	}
	traceID, err1 := trace.TraceIDFromHex(text[3:35])
	spanID, err2 := trace.SpanIDFromHex(text[36:52])
	flags, err3 := hex.DecodeString(text[53:])
	if err1 != nil || err2 != nil || err3 != nil {
		return c, false // unreachable: the form is valid
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.TraceFlags(flags[0]) & trace.FlagsSampled, Remote: true}), true
}

// Format writes a W3C traceparent, "" for an invalid context.
func Format(c trace.SpanContext) string {
	if !c.IsValid() {
		return ""
	}
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + (c.TraceFlags() & trace.FlagsSampled).String()
}

// traceID returns the trace id of a correlation id.
func traceID(correlationID string) (id trace.TraceID) {
	sum := sha256.Sum256([]byte("trace\n" + correlationID))
	copy(id[:], sum[:])
	return id
}

// spanID returns the id of a named span in a trace.
func spanID(in trace.TraceID, name string) (id trace.SpanID) {
	sum := sha256.Sum256(append(in[:], name...))
	copy(id[:], sum[:])
	return id
}

// within returns the context of a named span in the trace of c.
func within(c trace.SpanContext, name string) trace.SpanContext {
	return c.WithSpanID(spanID(c.TraceID(), name))
}

// createSpan returns the name of an orchestration's creation span.
func createSpan(orchestration string) string { return orchestration + "/create" }
