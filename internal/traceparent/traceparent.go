// Package traceparent knows what a W3C traceparent looks like, and carries the one that a caller has sent. Those who pass trace
// contexts on use it; making traces is tracing's.
package traceparent

import (
	"context"
	"regexp"
)

var form = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// Clean returns a text that is a traceparent of version 00, and "" for any other: what is none is not worth an error, and not
// passed on.
func Clean(text string) string {
	if !form.MatchString(text) || text[3:35] == "00000000000000000000000000000000" || text[36:52] == "0000000000000000" {
		return ""
	}
	return text
}

// TraceID is the id of the trace that a traceparent names, "" for a text that is none.
func TraceID(text string) string {
	if text = Clean(text); text == "" {
		return ""
	}
	return text[3:35]
}

type key struct{}

// With returns a context that knows the traceparent that a caller has sent.
func With(ctx context.Context, sent string) context.Context {
	if sent = Clean(sent); sent == "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, sent)
}

// From is the traceparent that the caller has sent, "" for none.
func From(ctx context.Context) string {
	sent, _ := ctx.Value(key{}).(string)
	return sent
}
