package outbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// schemaVersion is the version that this program writes; rows from before idempotency keys have none.
	schemaVersion = 1
	// inlinePayload is the largest payload that a p- row repeats, so that its dispatcher need not read the m- row.
	inlinePayload = 4 << 10
	// columns is the approximate number of columns of a row.
	columns = 24
	// maxAttempts is the length of the attempt log. maxAttemptError bounds an error text in the log and in a list, in
	// characters.
	maxAttempts     = 10
	maxAttemptError = 256
)

// message is a row of the table. m- and p- rows have the same columns, so that either can be made from the other.
type message struct {
	Record
	// blob names the blob with a large payload.
	blob string
	// givenUp is the reason why the message is, or will be, dead.
	givenUp string
	// owed is the debt to its dead letter; nil when the letter is current. An o- row exists as long as the m- row has it.
	owed *debt
	// indexRow is the index row that was last written together with the m- row.
	indexRow string
	// origin identifies the Add, and settlement the last change of status, so that a process recognises its own write.
	origin, settlement string
	// extra holds the properties as read, so that unknown ones are kept.
	extra map[string]any
}

// hasPayload reports whether the message can be delivered, and written back, without reading its m- row.
func (m *message) hasPayload() bool { return len(m.Payload) > 0 || m.blob != "" }

// hasFailed reports whether a pending message has an f- row, after a failed attempt. Monitor.count has the same
// condition.
func (m *message) hasFailed() bool { return m.RetryCount > 0 || !m.WaitsSince.IsZero() }

// hasLetter reports whether the message has an open dead letter, or is owed one.
func (m *message) hasLetter() bool { return m.Status == StatusDead || !m.ReportedAt.IsZero() }

// began returns the start of the message's current life.
func (m *message) began() time.Time {
	if m.RevivedAt.IsZero() {
		return m.CreatedAt
	}
	return m.RevivedAt
}

func (m *message) key() tables.Key {
	return tables.Key{Partition: partition(m.TenantID), Row: messageRow(m.ID)}
}

// entity returns the m- row.
func (m *message) entity() tables.Entity {
	props := make(map[string]any, max(columns, len(m.extra)))
	maps.Copy(props, m.extra)
	m.putRecord(props)
	put(props, "PayloadBlob", m.blob)
	put(props, "GivenUp", m.givenUp)
	put(props, "IndexRow", m.indexRow)
	put(props, "Origin", m.origin)
	put(props, "Settlement", m.settlement)
	put(props, "Owed", m.owed.text())
	if len(m.Attempts) > 0 {
		// Marshalling numbers, times and strings cannot fail.
		text, _ := json.Marshal(m.Attempts)
		props["Attempts"] = string(text)
	} else {
		delete(props, "Attempts")
	}
	if len(m.Payload) > 0 {
		tables.PutText(props, "Payload", string(m.Payload))
	}
	return tables.Entity{Key: m.key(), Properties: props}
}

// putRecord writes the columns that lists show.
func (m *message) putRecord(props map[string]any) {
	props["Id"] = m.ID
	props["TenantId"] = m.TenantID
	props["EventType"] = m.EventType
	props["CreatedAt"] = m.CreatedAt
	props["RetryCount"] = int32(m.RetryCount)
	props["IsProcessed"] = m.IsProcessed
	props["Status"] = string(m.Status)
	props["SchemaVersion"] = int32(schemaVersion)
	props["PayloadSize"] = m.PayloadSize
	key := ""
	if m.IdempotencyKey != uuid.Nil {
		key = m.IdempotencyKey.String()
	}
	put(props, "IdempotencyKey", key)
	put(props, "PayloadHash", m.PayloadHash)
	put(props, "Error", m.Error)
	put(props, "Destination", m.Destination)
	put(props, "OrderKey", m.OrderKey)
	put(props, "CorrelationId", m.CorrelationID)
	put(props, "TraceParent", m.TraceParent)
	put(props, "SkippedBy", m.SkippedBy)
	put(props, "ClaimedBy", m.ClaimedBy)
	putTime(props, "ClaimedUntil", m.ClaimedUntil)
	putTime(props, "ProcessedAt", m.ProcessedAt)
	putTime(props, "NextAttemptAt", m.NextAttemptAt)
	putTime(props, "DeadAt", m.DeadAt)
	putTime(props, "RevivedAt", m.RevivedAt)
	putTime(props, "WaitsSince", m.WaitsSince)
	putTime(props, "ReportedAt", m.ReportedAt)
	put(props, "DeadLetter", m.DeadLetter)
}

// pendingEntity returns the p- or w- row with this key: the m- row, without a large payload.
func (m *message) pendingEntity(row string) tables.Entity {
	e := m.entity()
	e.Row = row
	if len(m.Payload) > inlinePayload {
		dropPayload(e.Properties)
	}
	return e
}

// listEntity returns an f-, x- or d- row: the columns that a list shows.
func (m *message) listEntity(row string) tables.Entity {
	props := make(map[string]any, columns)
	m.putRecord(props)
	put(props, "Error", clip(m.Error, maxAttemptError))
	put(props, "PayloadBlob", m.blob)
	return tables.Entity{Key: tables.Key{Partition: partition(m.TenantID), Row: row}, Properties: props}
}

// failedOp returns the operation that writes the f- row.
func (m *message) failedOp() tables.Op {
	return tables.Upsert(m.listEntity(failedRow(m.CreatedAt, m.ID)))
}

// dropPayload removes the payload, all parts of it.
func dropPayload(props map[string]any) {
	tables.PutText(props, "Payload", "")
	delete(props, "Payload")
}

// decode decodes a row of a message, of any kind. A row from before idempotency keys has no SchemaVersion; a row of a
// newer version is a *VersionError.
func decode(e tables.Entity) (message, error) {
	version := e.Int("SchemaVersion")
	if version > schemaVersion {
		return message{}, &VersionError{Row: e.Key.String(), Version: version}
	}
	tenant, err := tables.UnescapeKey(e.Partition)
	if err != nil {
		return message{}, fmt.Errorf("%w: %s: %w", ErrCorrupt, e.Key, err)
	}
	m := message{
		Record: Record{
			ID:            idOf(e),
			TenantID:      tenant,
			EventType:     e.String("EventType"),
			Status:        Status(e.String("Status")),
			CreatedAt:     e.Time("CreatedAt"),
			RetryCount:    int(e.Int("RetryCount")),
			IsProcessed:   e.Bool("IsProcessed"),
			ProcessedAt:   e.Time("ProcessedAt"),
			NextAttemptAt: e.Time("NextAttemptAt"),
			DeadAt:        e.Time("DeadAt"),
			RevivedAt:     e.Time("RevivedAt"),
			WaitsSince:    e.Time("WaitsSince"),
			ReportedAt:    e.Time("ReportedAt"),
			DeadLetter:    e.String("DeadLetter"),
			Error:         e.String("Error"),
			Destination:   e.String("Destination"),
			OrderKey:      e.String("OrderKey"),
			CorrelationID: e.String("CorrelationId"),
			TraceParent:   e.String("TraceParent"),
			SkippedBy:     e.String("SkippedBy"),
			ClaimedBy:     e.String("ClaimedBy"),
			ClaimedUntil:  e.Time("ClaimedUntil"),
			PayloadHash:   e.String("PayloadHash"),
			PayloadSize:   e.Int("PayloadSize"),
			SchemaVersion: int(version),
		},
		blob:       e.String("PayloadBlob"),
		givenUp:    e.String("GivenUp"),
		indexRow:   e.String("IndexRow"),
		origin:     e.String("Origin"),
		settlement: e.String("Settlement"),
		extra:      e.Properties,
	}
	return m, m.decodeTexts(e)
}

// decodeTexts decodes the columns that hold encoded values, and the columns of rows from before idempotency keys.
func (m *message) decodeTexts(e tables.Entity) (err error) {
	if m.EventType == "" {
		m.EventType = e.String("Name")
	}
	if text := tables.Text(e, "Payload"); text != "" {
		m.Payload = json.RawMessage(text)
	}
	if text := e.String("IdempotencyKey"); text != "" {
		if m.IdempotencyKey, err = uuid.Parse(text); err != nil {
			return fmt.Errorf("%w: %s: IdempotencyKey: %w", ErrCorrupt, e.Key, err)
		}
	}
	if text := e.String("Owed"); text != "" {
		if err := json.Unmarshal([]byte(text), &m.owed); err != nil {
			return fmt.Errorf("%w: %s: Owed: %w", ErrCorrupt, e.Key, err)
		}
	}
	if text := e.String("Attempts"); text != "" {
		if err := json.Unmarshal([]byte(text), &m.Attempts); err != nil {
			return fmt.Errorf("%w: %s: Attempts: %w", ErrCorrupt, e.Key, err)
		}
	}
	if m.Status == "" {
		m.Status = StatusPending
		if m.IsProcessed || !m.ProcessedAt.IsZero() {
			m.Status = StatusProcessed
		}
	}
	return nil
}

// idOf returns the message's id: from its row key, or from its column in an index row.
func idOf(e tables.Entity) string {
	if len(e.Row) > len(messagePrefix) && e.Row[:len(messagePrefix)] == messagePrefix {
		if id, err := tables.UnescapeKey(e.Row[len(messagePrefix):]); err == nil {
			return id
		}
	}
	return e.String("Id")
}

// unclaim removes the claim.
func (m *message) unclaim() {
	m.ClaimedBy, m.ClaimedUntil = "", time.Time{}
}

// postpone makes the message due at another time, without a claim.
func (m *message) postpone(due time.Time) {
	m.unclaim()
	m.NextAttemptAt = truncated(due)
}

// event returns the event to deliver.
func (m *message) event(payload json.RawMessage) Event {
	return Event{
		ID: m.ID, TenantID: m.TenantID, Type: m.EventType, Key: m.IdempotencyKey, Payload: payload, CreatedAt: m.CreatedAt,
		OrderKey: m.OrderKey, CorrelationID: m.CorrelationID, TraceParent: m.TraceParent, Attempt: m.RetryCount + 1,
	}
}

// log adds an attempt to the log, dropping the oldest.
func (m *message) log(a Attempt) {
	a.Error, a.SentAs = clip(a.Error, maxAttemptError), clip(a.SentAs, maxAttemptError)
	m.Attempts = append(m.Attempts[max(0, len(m.Attempts)+1-maxAttempts):len(m.Attempts):len(m.Attempts)], a)
}

func put(props map[string]any, name, v string) {
	if v == "" {
		delete(props, name)
		return
	}
	props[name] = v
}

func putTime(props map[string]any, name string, t time.Time) {
	if t.IsZero() {
		delete(props, name)
		return
	}
	props[name] = t
}
