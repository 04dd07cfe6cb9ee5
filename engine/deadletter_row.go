package engine

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/tables"
)

// base64Encoding is the OriginalMessageEncoding of a message that is not text.
const base64Encoding = "base64"

// prepare checks a dead letter and makes of it what is stored.
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
		checkTime("time of the first failure", d.FirstFailureAtUtc),
		checkTime("time of the last failure", d.LastFailureAtUtc),
		checkTime("insertion time", d.InsertedAtUtc),
		status,
	)
	if err != nil {
		return err
	}
	d.FirstFailureAtUtc, d.LastFailureAtUtc = whole(d.FirstFailureAtUtc), whole(d.LastFailureAtUtc)
	d.InsertedAtUtc = whole(d.InsertedAtUtc)
	d.ErrorMessage = errorText(d.ErrorMessage)
	d.ErrorSignature = cmp.Or(d.ErrorSignature, ErrorSignature(d.ErrorMessage))
	d.DequeueCount = min(max(d.DequeueCount, 0), math.MaxInt32)
	return nil
}

// MessageText is the original message as it is stored and shown: as it is, with the encoding "", when it is UTF-8 without
// NUL, else in standard base64, with the encoding "base64".
func (d DeadLetter) MessageText() (text, encoding string) {
	if utf8.Valid(d.OriginalMessage) && !bytes.Contains(d.OriginalMessage, []byte{0}) {
		return string(d.OriginalMessage), ""
	}
	return base64.StdEncoding.EncodeToString(d.OriginalMessage), base64Encoding
}

// deadLetterListColumns are the columns that a list shows or filters by, but for the error message, which is cut.
func deadLetterListColumns() []string {
	return []string{
		"Engine", "InstanceId", "OriginalQueue", "ErrorSignature", "DequeueCount", "FirstFailureAtUtc",
		"LastFailureAtUtc", "Status", "CorrelationId",
	}
}

// entity is the main row. Columns may be added but never renamed: rows outlive the program that wrote them.
func (d DeadLetter) entity() tables.Entity {
	props := map[string]any{
		"Engine":            storable(d.Engine),
		"MessageId":         storable(d.MessageID),
		"InstanceId":        storable(d.InstanceID),
		"OriginalQueue":     storable(d.OriginalQueue),
		"ErrorMessage":      d.ErrorMessage,
		"ErrorSignature":    d.ErrorSignature,
		"DetectedReason":    string(d.DetectedReason),
		"DequeueCount":      int32(d.DequeueCount),
		"InsertedAtUtc":     d.InsertedAtUtc,
		"FirstFailureAtUtc": d.FirstFailureAtUtc,
		"LastFailureAtUtc":  d.LastFailureAtUtc,
		"Status":            string(d.Status),
		"CorrelationId":     storable(d.CorrelationID),
	}
	for name, text := range map[string]string{"ResolutionNotes": d.ResolutionNotes, "ResolvedBy": d.ResolvedBy} {
		if text != "" {
			props[name] = clip(storable(text), maxErrorText)
		}
	}
	if !d.ResolvedAtUtc.IsZero() {
		props["ResolvedAtUtc"] = d.ResolvedAtUtc
	}
	text, encoding := d.MessageText()
	tables.PutText(props, "OriginalMessage", text)
	if encoding != "" {
		props["OriginalMessageEncoding"] = encoding
	}
	key := tables.Key{Partition: tables.EscapeKey(d.Engine), Row: rowKey(d.MessageID, d.InsertedAtUtc)}
	return tables.Entity{Key: key, Properties: props}
}

// deadLetterOf reads a main row or an index row.
func deadLetterOf(e tables.Entity) (DeadLetter, error) {
	d := DeadLetter{
		Engine:            e.String("Engine"),
		RowKey:            rowKeyOf(e),
		MessageID:         e.String("MessageId"),
		InsertedAtUtc:     e.Time("InsertedAtUtc"),
		InstanceID:        e.String("InstanceId"),
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
		CorrelationID:     e.String("CorrelationId"),
	}
	if d.InsertedAtUtc.Unix() == 0 {
		d.InsertedAtUtc = time.Time{}
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
