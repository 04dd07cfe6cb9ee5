// Package traceparent knows what a W3C traceparent looks like, and carries the one that a caller has sent. Those who pass trace
// contexts on use it; making traces is tracing's.
package traceparent

import (
	"context"
	"strings"
)

// size is how long a traceparent of version 00 is.
const size = len("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")

// Clean returns a text that is a traceparent of version 00, and "" for any other: what is none is not worth an error, and not
// passed on. Every orchestration asks, so this is no regular expression.
func Clean(text string) string {
	if len(text) != size || text[:3] != "00-" || text[35] != '-' || text[52] != '-' ||
		!isHex(text[3:35]) || !isHex(text[36:52]) || !isHex(text[53:]) || isZero(text[3:35]) || isZero(text[36:52]) {
		return ""
	}
	return text
}

func isHex(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isZero(text string) bool { return strings.Trim(text, "0") == "" }

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
