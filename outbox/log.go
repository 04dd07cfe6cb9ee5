package outbox

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/vibedata/roundhouse/internal/traceparent"
)

// The log lines are exactly the outbox document's ("Logging Prefixes"): the message is the whole line, and the
// attributes have the rest.

func (o *Outbox) logFetch(ctx context.Context, tenant, destination string, count int) {
	if !o.logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	o.logger.InfoContext(ctx, fmt.Sprintf("OUTBOX_WORKER_FETCH count=%d", count),
		"tenantId", tenant, "destination", destination)
}

func (o *Outbox) logSuccess(ctx context.Context, m *message) {
	if !o.logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	o.about(m).InfoContext(ctx, fmt.Sprintf("OUTBOX_WORKER_DISPATCH_SUCCESS id=%s key=%s", logField(m.ID), m.IdempotencyKey))
}

func (o *Outbox) logFail(ctx context.Context, m *message) {
	o.about(m).WarnContext(ctx, fmt.Sprintf("OUTBOX_WORKER_DISPATCH_FAIL id=%s key=%s retry=%d max=%d", logField(m.ID), m.IdempotencyKey, m.RetryCount, o.options.MaxRetries),
		"error", m.Error, "status", string(m.Status), "attempt", m.RetryCount)
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
	o.about(m).InfoContext(ctx, fmt.Sprintf("OUTBOX_WORKER_SKIP_PROCESSED id=%s", logField(m.ID)))
}

// about returns a logger with the attributes of a message.
func (o *Outbox) about(m *message) *slog.Logger {
	log := o.logger.With("eventId", m.ID, "eventKey", m.IdempotencyKey, "tenantId", m.TenantID, "eventType", m.EventType, "destination", m.Destination,
		"correlationId", m.CorrelationID)
	if id := traceparent.TraceID(m.TraceParent); id != "" {
		log = log.With("trace_id", id)
	}
	return log
}
