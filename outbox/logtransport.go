package outbox

import (
	"context"
	"log/slog"
)

// Log is a Transport that writes a line and no payload: for development, and for events that nobody wants yet. It always
// succeeds.
type Log struct {
	logger *slog.Logger
}

var _ Transport = (*Log)(nil)

// NewLog makes a Log; nil means slog.Default.
func NewLog(logger *slog.Logger) *Log {
	if logger == nil {
		logger = slog.Default()
	}
	return &Log{logger}
}

// Deliver writes the line.
func (l *Log) Deliver(ctx context.Context, e Event) error {
	l.logger.InfoContext(ctx, "outbox event", "id", e.ID, "key", e.Key, "tenant", e.TenantID, "eventType", e.Type,
		"bytes", len(e.Payload), "attempt", e.Attempt, "correlationId", e.CorrelationID)
	return nil
}
