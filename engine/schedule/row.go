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
	// maxRowKey bounds a key, in bytes, of which it has at least as many as the units that storage counts.
	maxRowKey = 512
	// maxError bounds a stored error, in bytes.
	maxError = 1 << 10
)

// The columns of a row. Columns may be added but never renamed: rows outlive the program that wrote them.
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

// ClearColumns returns, for row encryption, the columns that hold no payload.
func ClearColumns() map[string][]string {
	return map[string][]string{Table: {columnEngine, columnSchedule, columnItem, columnCron, columnCorrelation, columnInstance, columnTenant}}
}

// rowOf returns the row key of a target. No escaped text has a ~, so keys of different targets differ.
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

// state is the stored state of a target.
type state struct {
	engine, schedule, item string
	// cron and spread are the times that apply since after.
	cron   string
	spread time.Duration
	// after is the time after which due slots are sent.
	after time.Time
	// slot is the last sent slot, and sentAt its time; both are zero before the first.
	slot, sentAt time.Time
	// messages counts the messages of the slot, and sent names the first of them.
	messages int
	sent     Sent
	// err is the error of the last try, failures the number of failures in a row, and retryAt the next try.
	err      string
	failures int
	retryAt  time.Time
	// changed is when the row was written.
	changed time.Time
	etag    string
}

func (s state) key() string { return rowOf(s.engine, s.schedule, s.item) }

// timing returns when the target is due by its stored times.
func (s state) timing() timing {
	t, err := newTiming(s.cron, s.spread, s.key())
	if err != nil {
		return timing{cron: s.cron, spread: s.spread} // written by a program with other rules: no slot is pending
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

// op writes the row, unless it has changed meanwhile.
func (s state) op() tables.Op {
	if s.etag == "" {
		return tables.Insert(s.entity())
	}
	return tables.Replace(s.entity())
}

// clip shortens and redacts an error text.
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
