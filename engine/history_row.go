package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// maxOps bounds one transaction in rows, those of the index included.
	maxOps = 100
	// maxTransactionText bounds one transaction in bytes of text. JSON takes up to six times as much on the wire, of
	// 4 MiB.
	maxTransactionText = 512 << 10
	// maxDocument bounds an input or output, in bytes: two of them, as UTF-16, and an error text fit an entity.
	maxDocument = 192 << 10
)

// checkRun validates entries by the rules of Entry and Record.
func checkRun(entries []Entry) error {
	times := make(map[time.Time]bool, len(entries))
	runs := 0
	for _, e := range entries {
		if err := e.check(); err != nil {
			return err
		}
		if e.Engine != entries[0].Engine || e.CorrelationID != entries[0].CorrelationID {
			return errors.New("the entries are of different runs: record each run by itself")
		}
		if e.RunStatus != "" {
			runs++
		}
		at := truncateMicros(e.CreatedAtUtc)
		if times[at] {
			return fmt.Errorf("two entries have the time %v: entries of a run need times of their own", at)
		}
		times[at] = true
	}
	if runs > 1 {
		return errors.New("more than one entry has a run status: set it on the last one only")
	}
	return nil
}

func (e Entry) check() error {
	var status error
	valid := func(s Status) bool { return s == StatusSucceeded || s == StatusFailed }
	if !valid(e.Status) || e.RunStatus != "" && !valid(e.RunStatus) {
		status = fmt.Errorf("status %q, run status %q: use Succeeded or Failed", e.Status, e.RunStatus)
	}
	return errors.Join(
		checkID("engine", e.Engine),
		checkID("correlation id", e.CorrelationID),
		checkLength("instance id", e.InstanceID, MaxInstanceIDLength),
		checkTenant(e.TenantID),
		checkLength("operation", e.Operation, MaxInstanceIDLength),
		checkTime("creation time", e.CreatedAtUtc),
		status,
	)
}

// prepare normalises an entry for storage.
func (e *Entry) prepare() {
	e.CreatedAtUtc = truncateMicros(e.CreatedAtUtc)
	e.Input = storedDocument(e.Input)
	e.Output = storedDocument(e.Output)
	e.Error = errorText(e.Error)
}

// storedDocument returns a JSON document as it is stored. Its length is checked before the redaction, because that
// bounds the cost of the redaction, and after it, because [redacted] can be longer than a secret.
func storedDocument(doc json.RawMessage) json.RawMessage {
	if len(doc) <= maxDocument && payload.Check(doc) == nil { // deeper nesting could not be read back
		clean := bytes.ToValidUTF8(RedactJSON(doc), []byte("\uFFFD"))
		if len(clean) <= maxDocument {
			return clean
		}
	}
	return fmt.Appendf(nil, `{"omittedBytes":%d}`, len(doc))
}

// transactions divides prepared entries into transactions, in order; op makes the operation for a row.
func transactions(op func(tables.Entity) tables.Op, entries []Entry) [][]tables.Op {
	var all [][]tables.Op
	var ops []tables.Op
	size := 0
	for _, e := range entries {
		n := len(e.Input) + len(e.Output) + len(e.Error)
		rows := e.rows()
		if len(ops)+len(rows) > maxOps || len(ops) > 0 && size+n > maxTransactionText {
			all, ops, size = append(all, ops), nil, 0
		}
		for _, row := range rows {
			ops = append(ops, op(row))
		}
		size += n
	}
	return append(all, ops)
}

// rows returns the main row and its index rows.
func (e Entry) rows() []tables.Entity {
	main := e.entity()
	return append([]tables.Entity{main}, e.indexRows(main)...)
}

// indexRows returns the index rows of a main row: by status, by tenant and by instance.
func (e Entry) indexRows(main tables.Entity) (rows []tables.Entity) {
	for _, prefix := range listPrefixes(e.list(), e.TenantID) {
		rows = append(rows, indexRow(main, prefix, e.CreatedAtUtc, historyListColumns()))
	}
	return withInstance(rows)
}

// historyListColumns returns the columns that a list shows or filters by.
func historyListColumns() []string {
	return []string{"Engine", "InstanceId", "Operation", "Status", "DurationMs", "CreatedAtUtc", "CorrelationId", supersededColumn, tenantColumn}
}

// entity returns the main row. Columns may be added but never renamed: rows outlive the program that wrote them.
func (e Entry) entity() tables.Entity {
	props := map[string]any{
		"Engine":        cleanText(e.Engine),
		"InstanceId":    cleanText(e.InstanceID),
		"Operation":     cleanText(e.Operation),
		"Status":        string(e.Status),
		"DurationMs":    e.DurationMs,
		"CreatedAtUtc":  e.CreatedAtUtc,
		"CorrelationId": cleanText(e.CorrelationID),
	}
	for name, text := range map[string]string{"Input": string(e.Input), "Output": string(e.Output), "Error": e.Error, "RunStatus": string(e.RunStatus), "Work": e.Work, supersededColumn: e.SupersededBy, tenantColumn: cleanText(e.TenantID)} {
		if text != "" {
			tables.PutText(props, name, text)
		}
	}
	key := tables.Key{Partition: tables.EscapeKey(e.Engine), Row: rowKey(e.CorrelationID, e.CreatedAtUtc)}
	return tables.Entity{Key: key, Properties: props}
}

// entryOf decodes a main row or an index row.
func entryOf(e tables.Entity) Entry {
	entry := Entry{
		Engine:        e.String("Engine"),
		RowKey:        rowKeyOf(e),
		InstanceID:    e.String("InstanceId"),
		TenantID:      e.String(tenantColumn),
		Operation:     e.String("Operation"),
		Status:        Status(e.String("Status")),
		DurationMs:    e.Int("DurationMs"),
		Error:         e.String("Error"),
		CreatedAtUtc:  e.Time("CreatedAtUtc"),
		CorrelationID: e.String("CorrelationId"),
		RunStatus:     Status(e.String("RunStatus")),
		Work:          e.String("Work"),
		SupersededBy:  e.String(supersededColumn),
	}
	if text := tables.Text(e, "Input"); text != "" {
		entry.Input = json.RawMessage(text)
	}
	if text := tables.Text(e, "Output"); text != "" {
		entry.Output = json.RawMessage(text)
	}
	return entry
}
