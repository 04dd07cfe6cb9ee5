package outbox

import (
	"context"
	"log/slog"
)

// Log is a Transport that logs a line without the payload: for development, and for events without a receiver. It
// always succeeds.
type Log struct {
	logger *slog.Logger
}

var _ Transport = (*Log)(nil)

// NewLog returns a Log; a nil logger means slog.Default.
func NewLog(logger *slog.Logger) *Log {
	if logger == nil {
		logger = slog.Default()
	}
	return &Log{logger}
}

// Deliver logs the event.
func (l *Log) Deliver(ctx context.Context, e Event) error {
	l.logger.InfoContext(ctx, "outbox event", "eventId", e.ID, "eventKey", e.Key, "tenantId", e.TenantID, "eventType", e.Type,
		"bytes", len(e.Payload), "attempt", e.Attempt, "correlationId", e.CorrelationID)
	return nil
}
