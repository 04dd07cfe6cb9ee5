package handler

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/outbox"
)

// Events reads the state of the events that an app has published. It is read-only, and safe for concurrent use.
type Events struct {
	admin  *outbox.Admin
	writer *outbox.Writer
	kept   time.Duration
}

// Get reads an event. The errors are those of outbox.Admin.Get.
func (e Events) Get(ctx context.Context, tenantID, id string) (outbox.Record, error) {
	return e.admin.Get(ctx, tenantID, id)
}

// ID returns the id of an event that an orchestrator publishes with a key (orchestrator.Publication).
func (e Events) ID(tenantID, eventType, key string) string {
	return publicationKey(e.writer, tenantID, eventType, key).String()
}

// Kept returns the retention of an event after its delivery.
func (e Events) Kept() time.Duration { return e.kept }

// publicationKey returns the idempotency key of an event that an orchestrator publishes.
func publicationKey(w *outbox.Writer, tenantID, eventType, key string) uuid.UUID {
	return w.Key(tenantID, "orchestration", key, eventType, "")
}
