package outbox

import (
	"context"
	"fmt"
	"log/slog"
)

// The log lines are the outbox document's ("Logging Prefixes"), to the letter: the message is the whole line, and the
// attributes say what it has no room for.

func (o *Outbox) logFetch(ctx context.Context, tenant, destination string, count int) {
	if !o.logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	o.logger.InfoContext(ctx, fmt.Sprintf("OUTBOX_WORKER_FETCH count=%d", count),
		"tenant", tenant, "destination", destination)
}

func (o *Outbox) logSuccess(ctx context.Context, m *message) {
	if !o.logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	o.logger.InfoContext(ctx, fmt.Sprintf("OUTBOX_WORKER_DISPATCH_SUCCESS id=%s key=%s", logField(m.ID), m.IdempotencyKey), about(m)...)
}

func (o *Outbox) logFail(ctx context.Context, m *message) {
	o.logger.WarnContext(ctx, fmt.Sprintf("OUTBOX_WORKER_DISPATCH_FAIL id=%s key=%s retry=%d max=%d", logField(m.ID), m.IdempotencyKey, m.RetryCount, o.options.MaxRetries),
		append(about(m), "error", m.Error, "status", string(m.Status))...)
}

func (o *Outbox) logDuplicate(ctx context.Context, m *message, differs bool) {
	level := slog.LevelInfo
	if differs {
		level = slog.LevelWarn
	}
	o.logger.Log(ctx, level, fmt.Sprintf("OUTBOX_WORKER_DUPLICATE tenant=%s key=%s", logField(m.TenantID), m.IdempotencyKey),
		"eventType", m.EventType, "payloadDiffers", differs)
}

func (o *Outbox) logSkipProcessed(ctx context.Context, m *message) {
	o.logger.InfoContext(ctx, fmt.Sprintf("OUTBOX_WORKER_SKIP_PROCESSED id=%s", logField(m.ID)), about(m)...)
}

// about are the attributes of a line on a message.
func about(m *message) []any {
	return []any{"tenant", m.TenantID, "eventType", m.EventType, "destination", m.Destination, "correlationId", m.CorrelationID}
}
