package engine

import (
	"context"
	"log/slog"
)

type reportKey struct{}

// WithReport is a context for the Handle methods of a Pipeline, which tell told what they know of the work, as fields of the log: whose
// it is as soon as they know, and what became of it at its end. They log no line about it then: whoever asked does. A field that is told
// again has a new value, and "error" says that not all is well, also where the delivery is acknowledged.
func WithReport(ctx context.Context, told func(...slog.Attr)) context.Context {
	return context.WithValue(ctx, reportKey{}, told)
}

// tellReport tells who asked what is known, and says whether somebody did.
func tellReport(ctx context.Context, attrs ...slog.Attr) bool {
	told, ok := ctx.Value(reportKey{}).(func(...slog.Attr))
	if ok {
		told(attrs...)
	}
	return ok
}

// logDelivery tells what became of a delivery: who asked, or else the log.
func (p *Pipeline) logDelivery(ctx context.Context, level slog.Level, attrs ...slog.Attr) {
	if !tellReport(ctx, attrs...) {
		p.config.Log.LogAttrs(ctx, level, "delivery", attrs...)
	}
}
