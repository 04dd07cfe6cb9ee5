package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// Table is the table of this package.
	Table = "schedules"
	// partition holds all rows: one transaction writes many of them.
	partition = "schedules"
	// maxRowKey is what a key may have, in bytes, which are at least as many as the units that storage counts.
	maxRowKey = 512
	// maxError bounds what is kept of an error, in bytes.
	maxError = 1 << 10
)

// The columns of a row. They may be added to, but not renamed: rows outlive the program that wrote them.
const (
	columnEngine      = "Engine"
	columnSchedule    = "Schedule"
	columnItem        = "Item"
	columnCron        = "Cron"
	columnSpread      = "Spread"
	columnAfter       = "AfterUtc"
	columnSlot        = "SlotUtc"
	columnSent        = "SentAtUtc"
	columnMessages    = "Messages"
	columnCorrelation = "CorrelationId"
	columnInstance    = "InstanceId"
	columnTenant      = "TenantId"
	columnError       = "Error"
	columnFailures    = "Failures"
	columnRetry       = "RetryAtUtc"
	columnChanged     = "ChangedAtUtc"
)

// ClearColumns names, for whoever encrypts rows, the columns that hold no payload.
func ClearColumns() map[string][]string {
	return map[string][]string{Table: {columnEngine, columnSchedule, columnItem, columnCron, columnCorrelation, columnInstance, columnTenant}}
}

// rowOf is the row key of an item. No escaped text has a ~, so keys of different items differ.
func rowOf(engineName, schedule, item string) string {
	key := tables.EscapeKey(engineName) + "~" + tables.EscapeKey(schedule) + "~"
	if escaped := tables.EscapeKey(item); len(key)+len(escaped) <= maxRowKey {
		return key + escaped
	}
	sum := sha256.Sum256([]byte(item))
	return key + "~" + hex.EncodeToString(sum[:])
}

// Sent names the run of a message that was sent.
type Sent struct{ CorrelationID, InstanceID, TenantID string }

// state is what storage knows of an item.
type state struct {
	engine, schedule, item string
	// cron and spread are the times that hold since after.
	cron   string
	spread time.Duration
	// after is from when on slots are to be sent: those that are due later.
	after time.Time
	// slot is the last one that was sent, and sentAt when; both are zero before the first.
	slot, sentAt time.Time
	// messages counts the messages of the slot, and sent names the first of them.
	messages int
	sent     Sent
	// err is why the last try failed, failures how often that has happened in a row, and retryAt when the next try is.
	err      string
	failures int
	retryAt  time.Time
	// changed is when the row was written.
	changed time.Time
	etag    string
}

func (s state) key() string { return rowOf(s.engine, s.schedule, s.item) }

// timing is when the item was due by what holds in storage.
func (s state) timing() timing {
	t, err := newTiming(s.cron, s.spread, s.key())
	if err != nil {
		return timing{cron: s.cron, spread: s.spread} // a program with other rules has written it: nothing is owed
	}
	return t
}

func stateOf(e tables.Entity) state {
	return state{engine: e.String(columnEngine), schedule: e.String(columnSchedule), item: e.String(columnItem),
		cron: e.String(columnCron), spread: time.Duration(e.Int(columnSpread)), after: e.Time(columnAfter), slot: e.Time(columnSlot),
		sentAt: e.Time(columnSent), messages: int(e.Int(columnMessages)),
		sent:     Sent{CorrelationID: e.String(columnCorrelation), InstanceID: e.String(columnInstance), TenantID: e.String(columnTenant)},
		err:      e.String(columnError),
		failures: int(e.Int(columnFailures)), retryAt: e.Time(columnRetry), changed: e.Time(columnChanged), etag: e.ETag}
}

func (s state) entity() tables.Entity {
	properties := map[string]any{columnEngine: s.engine, columnSchedule: s.schedule, columnItem: s.item, columnCron: s.cron, columnSpread: int64(s.spread),
		columnMessages: int64(s.messages), columnCorrelation: s.sent.CorrelationID, columnInstance: s.sent.InstanceID, columnTenant: s.sent.TenantID,
		columnError: clip(s.err), columnFailures: int64(s.failures)}
	for name, at := range map[string]time.Time{columnAfter: s.after, columnSlot: s.slot, columnSent: s.sentAt, columnRetry: s.retryAt, columnChanged: s.changed} {
		if !at.IsZero() {
			properties[name] = at
		}
	}
	return tables.Entity{Key: tables.Key{Partition: partition, Row: s.key()}, ETag: s.etag, Properties: properties}
}

// op writes the row, unless another has meanwhile.
func (s state) op() tables.Op {
	if s.etag == "" {
		return tables.Insert(s.entity())
	}
	return tables.Replace(s.entity())
}

// clip shortens an error text, and takes secrets out of it.
func clip(text string) string {
	text = engine.Redact(text)
	if len(text) <= maxError {
		return text
	}
	at := maxError
	for at > 0 && text[at]&0xC0 == 0x80 { // not in the middle of a character
		at--
	}
	return text[:at] + "..."
}
