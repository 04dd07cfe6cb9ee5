package engine

import (
	"context"
	"log/slog"
)

type reportKey struct{}

// WithReport returns a context for the Handle methods of a Pipeline, which pass log fields to told: the identity of
// the message as soon as it is known, and the outcome at the end. They log no line then: the caller does. A repeated
// field replaces its value, and "error" marks a failure, also of an acknowledged delivery.
func WithReport(ctx context.Context, told func(...slog.Attr)) context.Context {
	return context.WithValue(ctx, reportKey{}, told)
}

// tellReport passes attrs to the function in ctx and reports whether there is one.
func tellReport(ctx context.Context, attrs ...slog.Attr) bool {
	told, ok := ctx.Value(reportKey{}).(func(...slog.Attr))
	if ok {
		told(attrs...)
	}
	return ok
}

// logDelivery passes the outcome of a delivery to the function in ctx, or else to the log.
func (p *Pipeline) logDelivery(ctx context.Context, level slog.Level, attrs ...slog.Attr) {
	if !tellReport(ctx, attrs...) {
		p.config.Log.LogAttrs(ctx, level, "delivery", attrs...)
	}
}
