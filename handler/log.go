package handler

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/logs"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/orchestrator"
)

// newLog makes the app's log, whose fields docs/observability.md lists. stop says at the end which lines were left out.
func newLog(w io.Writer, level slog.Level) (log *slog.Logger, stop func()) {
	limited := logs.Limit(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}), logs.Limits{Kind: []string{
		"function", "outcome", "engine", "fate", "queue", "service", "job", "check", "destination", "poller", "route", "setting"}})
	within := logs.Within(limited, redacted(activityOf), redacted(trigger.About), spanOf)
	return slog.New(redact.Log(within)), limited.Close
}

// redacted is a source whose texts have no secrets: ids and operations are what a sender has written.
func redacted(source func(context.Context) []slog.Attr) func(context.Context) []slog.Attr {
	return func(ctx context.Context) []slog.Attr {
		attrs := source(ctx)
		for i, a := range attrs {
			if a.Value.Kind() == slog.KindString {
				attrs[i].Value = slog.StringValue(redact.Text(a.Value.String()))
			}
		}
		return attrs
	}
}

// activityOf is the activity at work.
func activityOf(ctx context.Context) []slog.Attr { return orchestrator.Info(ctx).LogAttrs() }

// spanOf is the trace at hand.
func spanOf(ctx context.Context) []slog.Attr {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		return []slog.Attr{slog.String("trace_id", c.TraceID().String())}
	}
	return nil
}

// levelFor is the level of a line that nobody needs when there was nothing to do.
func levelFor(something bool) slog.Level {
	if something {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
