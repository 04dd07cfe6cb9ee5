package engine

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/tables"
)

// base64Encoding is the OriginalMessageEncoding of a message that is not text.
const base64Encoding = "base64"

// prepare validates a dead letter and normalises its fields for storage.
func (d *DeadLetter) prepare() error {
	if d.Status == "" {
		d.Status = StatusPending
	}
	if d.FirstFailureAtUtc.IsZero() {
		d.FirstFailureAtUtc = d.LastFailureAtUtc
	}
	if d.InsertedAtUtc.IsZero() {
		d.InsertedAtUtc = time.Unix(0, 0)
	}
	var status error
	if !slices.Contains([]DeadLetterStatus{StatusPending, StatusResolved, StatusExpired}, d.Status) {
		status = fmt.Errorf("status %q: use Pending, Resolved or Expired", d.Status)
	}
	err := errors.Join(
		checkID("engine", d.Engine),
		checkID("message id", d.MessageID),
		checkID("correlation id", d.CorrelationID),
		checkLength("instance id", d.InstanceID, MaxInstanceIDLength),
		checkTenant(d.TenantID),
		checkLength("parent row key", d.ParentRowKey, MaxInstanceIDLength),
		checkTime("time of the first failure", d.FirstFailureAtUtc),
		checkTime("time of the last failure", d.LastFailureAtUtc),
		checkTime("insertion time", d.InsertedAtUtc),
		status,
	)
	if err != nil {
		return err
	}
	d.FirstFailureAtUtc, d.LastFailureAtUtc = truncateMicros(d.FirstFailureAtUtc), truncateMicros(d.LastFailureAtUtc)
	d.InsertedAtUtc, d.ResolvedAtUtc, d.ExpiredAtUtc = truncateMicros(d.InsertedAtUtc), truncateMicros(d.ResolvedAtUtc), truncateMicros(d.ExpiredAtUtc)
	d.ErrorMessage = errorText(d.ErrorMessage)
	d.ErrorSignature = cmp.Or(d.ErrorSignature, ErrorSignature(d.ErrorMessage))
	d.DequeueCount = min(max(d.DequeueCount, 0), math.MaxInt32)
	return nil
}

// MessageText returns the original message as it is stored and shown: unchanged, with the encoding "", when it is
// UTF-8 without NUL; otherwise in standard base64, with the encoding "base64".
func (d DeadLetter) MessageText() (text, encoding string) {
	if utf8.Valid(d.OriginalMessage) && !bytes.Contains(d.OriginalMessage, []byte{0}) {
		return string(d.OriginalMessage), ""
	}
	return base64.StdEncoding.EncodeToString(d.OriginalMessage), base64Encoding
}

// deadLetterListColumns returns the columns that a list shows or filters by. The error message is not among them,
// because it is cut.
func deadLetterListColumns() []string {
	return []string{
		"Engine", "InstanceId", "OriginalQueue", "ErrorSignature", "DequeueCount", "FirstFailureAtUtc",
		"LastFailureAtUtc", "Status", "CorrelationId", "ParentRowKey", "RetryCount", tenantColumn, assigneeColumn, "AssigneeName", "AssignedAtUtc",
	}
}

// indexRows returns the index rows of a main row: for lists by status, by tenant, by correlation id and by instance, and for
// retention.
func (d DeadLetter) indexRows(main tables.Entity) []tables.Entity {
	var rows []tables.Entity
	for _, prefix := range append(listPrefixes(string(d.Status), d.TenantID), correlationPrefix(d.CorrelationID)) {
		row := indexRow(main, prefix, d.LastFailureAtUtc, deadLetterListColumns())
		row.Properties["ErrorMessage"] = clip(d.ErrorMessage, maxListText)
		rows = append(rows, row)
	}
	rows = withInstance(rows)
	if at := d.endedAt(); !at.IsZero() {
		rows = append(rows, indexRow(main, endedPrefix, at, nil))
	}
	return rows
}

// endedAt returns the start of the retention; zero for a pending dead letter, which is kept for ever.
func (d DeadLetter) endedAt() time.Time {
	switch d.Status {
	case StatusResolved:
		return firstOf(d.ResolvedAtUtc, d.LastFailureAtUtc)
	case StatusExpired:
		return firstOf(d.ExpiredAtUtc, d.LastFailureAtUtc)
	default:
		return time.Time{}
	}
}

// firstOf returns the first of two times that is not zero.
func firstOf(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// entity returns the main row. Columns may be added but never renamed: rows outlive the program that wrote them.
func (d DeadLetter) entity() tables.Entity {
	props := map[string]any{
		"Engine":            cleanText(d.Engine),
		"MessageId":         cleanText(d.MessageID),
		"InstanceId":        cleanText(d.InstanceID),
		"OriginalQueue":     cleanText(d.OriginalQueue),
		"ErrorMessage":      d.ErrorMessage,
		"ErrorSignature":    d.ErrorSignature,
		"DetectedReason":    string(d.DetectedReason),
		"DequeueCount":      int32(d.DequeueCount),
		"InsertedAtUtc":     d.InsertedAtUtc,
		"FirstFailureAtUtc": d.FirstFailureAtUtc,
		"LastFailureAtUtc":  d.LastFailureAtUtc,
		"Status":            string(d.Status),
		"CorrelationId":     cleanText(d.CorrelationID),
	}
	maps.Copy(props, d.decided())
	d.putHeld(props)
	if d.ParentRowKey != "" {
		props["ParentRowKey"], props["RetryCount"] = d.ParentRowKey, int32(d.RetryCount)
	}
	if d.TenantID != "" {
		props[tenantColumn] = cleanText(d.TenantID)
	}
	if d.Node != "" {
		props["Node"] = clip(cleanText(d.Node), maxErrorText)
	}
	text, encoding := d.MessageText()
	tables.PutText(props, "OriginalMessage", text)
	if encoding != "" {
		props["OriginalMessageEncoding"] = encoding
	}
	key := tables.Key{Partition: tables.EscapeKey(d.Engine), Row: d.Key()}
	return tables.Entity{Key: key, Properties: props}
}

// Key returns the row key that Add gives it.
func (d DeadLetter) Key() string {
	return rowKey(d.MessageID, firstOf(truncateMicros(d.InsertedAtUtc), time.Unix(0, 0)))
}

// decidedColumns returns the columns that change after the row was written, except sentColumns. An empty one has no
// property.
func decidedColumns() []string {
	return []string{"Status", "ResolutionNotes", "ResolvedBy", "ResolvedAtUtc", "ExpiredAtUtc", "RetryId", "RetriedBy", "RetriedAtUtc", "RetryMessageId"}
}

func (d DeadLetter) decided() map[string]any {
	props := map[string]any{"Status": string(d.Status)}
	for name, text := range map[string]string{
		"ResolutionNotes": d.ResolutionNotes, "ResolvedBy": d.ResolvedBy, "RetryId": d.RetryID, "RetriedBy": d.RetriedBy, "RetryMessageId": d.RetryMessageID,
	} {
		if text != "" {
			props[name] = clip(cleanText(text), maxErrorText)
		}
	}
	for name, at := range map[string]time.Time{"ResolvedAtUtc": d.ResolvedAtUtc, "ExpiredAtUtc": d.ExpiredAtUtc, "RetriedAtUtc": d.RetriedAtUtc} {
		if !at.IsZero() {
			props[name] = at
		}
	}
	if d.SentMessage != nil {
		tables.PutText(props, sentColumn, string(d.SentMessage))
	}
	return props
}

// sentColumn holds SentMessage, split into as many properties as sentColumns names.
const sentColumn = "SentMessage"

func sentColumns() []string { return []string{sentColumn, sentColumn + "2"} }

// deadLetterOf decodes a main row or an index row.
func deadLetterOf(e tables.Entity) (DeadLetter, error) {
	d := DeadLetter{
		Engine:            e.String("Engine"),
		RowKey:            rowKeyOf(e),
		MessageID:         e.String("MessageId"),
		InsertedAtUtc:     e.Time("InsertedAtUtc"),
		InstanceID:        e.String("InstanceId"),
		TenantID:          e.String(tenantColumn),
		OriginalQueue:     e.String("OriginalQueue"),
		ErrorMessage:      e.String("ErrorMessage"),
		ErrorSignature:    e.String("ErrorSignature"),
		DetectedReason:    Reason(e.String("DetectedReason")),
		DequeueCount:      int(e.Int("DequeueCount")),
		FirstFailureAtUtc: e.Time("FirstFailureAtUtc"),
		LastFailureAtUtc:  e.Time("LastFailureAtUtc"),
		Status:            DeadLetterStatus(e.String("Status")),
		ResolutionNotes:   e.String("ResolutionNotes"),
		ResolvedAtUtc:     e.Time("ResolvedAtUtc"),
		ResolvedBy:        e.String("ResolvedBy"),
		ExpiredAtUtc:      e.Time("ExpiredAtUtc"),
		RetryID:           e.String("RetryId"),
		RetriedAtUtc:      e.Time("RetriedAtUtc"),
		RetriedBy:         e.String("RetriedBy"),
		RetryMessageID:    e.String("RetryMessageId"),
		ParentRowKey:      e.String("ParentRowKey"),
		RetryCount:        int(e.Int("RetryCount")),
		CorrelationID:     e.String("CorrelationId"),
		Node:              e.String("Node"),
	}
	if d.InsertedAtUtc.Unix() == 0 {
		d.InsertedAtUtc = time.Time{}
	}
	if err := d.readHeld(e); err != nil {
		return DeadLetter{}, err
	}
	if sent := tables.Text(e, sentColumn); sent != "" {
		d.SentMessage = []byte(sent)
	}
	text := tables.Text(e, "OriginalMessage")
	if text == "" {
		return d, nil
	}
	if e.String("OriginalMessageEncoding") != base64Encoding {
		d.OriginalMessage = []byte(text)
		return d, nil
	}
	original, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return DeadLetter{}, fmt.Errorf("the original message of %s is damaged: %w", e.Key, err)
	}
	d.OriginalMessage = original
	return d, nil
}
