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

// newLog makes the app's log, whose fields docs/observability.md lists. stop reports the omitted lines at the end.
func newLog(w io.Writer, level slog.Level) (log *slog.Logger, stop func()) {
	limited := logs.Limit(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}), logs.Limits{Kind: []string{
		"function", "outcome", "engine", "fate", "queue", "service", "job", "check", "destination", "poller", "route", "setting"}})
	within := logs.Within(limited, redacted(activityOf), redacted(trigger.About), spanOf)
	return slog.New(redact.Log(within)), limited.Close
}

// redacted returns a source with redacted texts: ids and operations come from senders.
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

// activityOf returns the current activity.
func activityOf(ctx context.Context) []slog.Attr { return orchestrator.Info(ctx).LogAttrs() }

// spanOf returns the current trace.
func spanOf(ctx context.Context) []slog.Attr {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		return []slog.Attr{slog.String("trace_id", c.TraceID().String())}
	}
	return nil
}

// levelFor returns the level of a line that is of no interest without work.
func levelFor(something bool) slog.Level {
	if something {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
