// Package traceparent checks the form of a W3C traceparent, and carries the caller's one in a context. It is for code
// that passes trace contexts on; package tracing makes traces.
package traceparent

import (
	"context"
	"strings"
)

// size is the length of a traceparent of version 00.
const size = len("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")

// Clean returns a text that is a traceparent of version 00, and "" for any other: an invalid one is not worth an error,
// and not passed on. Every orchestration calls it, so this is no regular expression.
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

// TraceID returns the id of the trace in a traceparent, "" for an invalid one.
func TraceID(text string) string {
	if text = Clean(text); text == "" {
		return ""
	}
	return text[3:35]
}

type key struct{}

// With returns a context with the caller's traceparent.
func With(ctx context.Context, sent string) context.Context {
	if sent = Clean(sent); sent == "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, sent)
}

// From returns the caller's traceparent, "" for none.
func From(ctx context.Context) string {
	sent, _ := ctx.Value(key{}).(string)
	return sent
}
