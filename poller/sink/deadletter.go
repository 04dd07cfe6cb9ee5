package sink

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/poller"
)

const (
	// maxDeadData is the most data that a dead letter repeats, in bytes. The row still has it.
	maxDeadData = 128 << 10
	// noQueue is the queue of messages without one.
	noQueue = "N/A"
)

// EngineName returns the engine name of a poller's rows in the dead letters.
func EngineName(name string) string { return "poller-" + name }

// DeadLetters returns a quarantine function for the rows of a poller: the dead letter of a row is written once, despite
// repeated quarantines. It belongs to the tenant for which the setting delivers the row, or to the platform if the row
// has none.
func DeadLetters(letters *engine.DeadLetters, s poller.Setting) func(context.Context, poller.Quarantined) error {
	return func(ctx context.Context, q poller.Quarantined) error {
		event := eventOf(q.Poller, q.EventID, q.Row)
		if len(event.Data) > maxDeadData || payload.Check(event.Data) != nil {
			event.Data, event.DataSize = nil, len(event.Data)
		}
		original, err := payload.Marshal(event)
		if err != nil {
			return fmt.Errorf("dead letter of row %.256s: %w", q.Row.Key, err)
		}
		_, err = letters.Add(ctx, engine.DeadLetter{
			Engine:            EngineName(q.Poller),
			MessageID:         q.EventID,
			InsertedAtUtc:     time.Unix(0, 0), // the event id is enough
			OriginalQueue:     noQueue,
			OriginalMessage:   original,
			ErrorMessage:      q.Err.Error(),
			DetectedReason:    engine.ReasonAttemptsExhausted,
			DequeueCount:      q.Attempts,
			FirstFailureAtUtc: q.FirstFailureAt,
			LastFailureAtUtc:  q.LastFailureAt,
			CorrelationID:     CorrelationID(q.Poller, q.EventID),
			TenantID:          tenantOf(s, q.Row),
		})
		return err
	}
}

// tenantOf returns the tenant of a row, "" for none and for an unreadable one.
func tenantOf(s poller.Setting, row poller.Row) string {
	var name, otherwise string
	switch {
	case s.Engine != nil:
		name, otherwise = s.Engine.TenantColumn, s.Engine.Tenant
	case s.Outbox != nil:
		name, otherwise = s.Outbox.TenantColumn, s.Outbox.Tenant
	}
	tenant, err := column(row, name, otherwise)
	if err != nil || len(tenant) > engine.MaxInstanceIDLength || strings.ContainsRune(tenant, 0) { // a dead letter would reject it
		return ""
	}
	return tenant
}

// Retry delivers a row of a dead letter again, as it was when it was quarantined: register it with the Retrier under
// EngineName. The handler drops known rows, since the event id is the same; the fencing token is 0.
func Retry(h poller.Handler) engine.RetryFunc {
	return func(ctx context.Context, letter engine.DeadLetter) (string, error) {
		var event Event
		if err := json.Unmarshal(letter.OriginalMessage, &event); err != nil {
			return "", fmt.Errorf("%w: the dead letter holds no row: %w", engine.ErrNotRetryable, err)
		}
		if event.DataSize > 0 {
			return "", fmt.Errorf("%w: the row has %d bytes, or levels, which the dead letter does not hold: change the row, so that the poller finds it again",
				engine.ErrNotRetryable, event.DataSize)
		}
		row := poller.Row{Cursor: event.Cursor, Key: event.Key, Data: event.Data, Deleted: event.Deleted}
		if id := poller.EventID(event.Poller, row); id != event.ID || EngineName(event.Poller) != letter.Engine {
			return "", fmt.Errorf("%w: the dead letter does not hold the row that it names", engine.ErrNotRetryable)
		}
		if err := h.Deliver(ctx, poller.Delivery{Poller: event.Poller, BatchID: "retry_" + letter.RetryID, Rows: []poller.Row{row}, EventIDs: []string{event.ID}}); err != nil {
			if poller.IsPermanent(err) {
				err = fmt.Errorf("%w: change the row, so that the poller finds it again: %w", engine.ErrNotRetryable, err)
			}
			return "", err
		}
		return event.ID, nil
	}
}
