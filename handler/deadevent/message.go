package deadevent

import (
	"encoding/json"
	"time"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/outbox"
)

// maxPayload bounds the payload that a dead letter repeats, in bytes. The event keeps it anyway.
const maxPayload = 128 << 10

// message is the original message of a dead event: a CloudEvent in JSON.
type message struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Time            time.Time       `json:"time"`
	TenantID        string          `json:"tenantid"`
	CorrelationID   string          `json:"correlationid,omitempty"`
	TraceParent     string          `json:"traceparent,omitempty"`
	DataContentType string          `json:"datacontenttype,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
	// DataSize is the length of omitted data that is long, or nested too deep to be read here.
	DataSize int `json:"datasize,omitempty"`
}

func messageOf(e outbox.DeadEvent) message {
	m := message{SpecVersion: "1.0", ID: e.Key.String(), Source: "/roundhouse", Type: e.Type, Time: e.CreatedAt, TenantID: e.TenantID,
		CorrelationID: e.CorrelationID, TraceParent: e.TraceParent}
	if len(e.Payload) > maxPayload || payload.Check(e.Payload) != nil {
		m.DataSize = len(e.Payload)
		return m
	}
	if json.Valid(e.Payload) {
		m.DataContentType, m.Data = "application/json", e.Payload
	}
	return m
}
