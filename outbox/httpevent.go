package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/traceparent"
)

const (
	jsonType       = "application/json"
	structuredType = "application/cloudevents+json; charset=utf-8"
)

// cloudEvent is an event in the form of CloudEvents 1.0; its JSON is the JSON event format. The extension traceparent
// is that of distributed tracing, and dataref that of the claim check.
type cloudEvent struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Subject         string          `json:"subject,omitempty"`
	Time            string          `json:"time,omitempty"`
	DataContentType string          `json:"datacontenttype,omitempty"`
	TenantID        string          `json:"tenantid,omitempty"`
	CorrelationID   string          `json:"correlationid,omitempty"`
	TraceParent     string          `json:"traceparent,omitempty"`
	DataRef         string          `json:"dataref,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
}

// origin holds the configured attributes of events.
type origin struct {
	source, subject string
}

// newOrigin validates the attributes that HTTPConfig describes.
func newOrigin(source, subject string) (origin, error) {
	if subject == "" {
		subject = "{tenant}"
	}
	o := origin{source: source, subject: subject}
	sample := Event{TenantID: "tenant", Type: "type"}
	var errs []error
	// url.Parse accepts control characters, spaces and braces, so these are checked separately.
	uri := o.sourceOf(sample)
	if _, err := url.Parse(uri); source == "" || err != nil || strings.ContainsFunc(uri, outsideURI) {
		errs = append(errs, fmt.Errorf("source %.64q is no URI reference; its placeholders are {tenant} and {type}", source))
	}
	if strings.ContainsAny(o.subjectOf(sample), "{}") || !utf8.ValidString(subject) {
		errs = append(errs, fmt.Errorf("subject %.64q has an unknown placeholder; use {tenant} and {type}", subject))
	}
	return o, errors.Join(errs...)
}

func outsideURI(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`{}"<>\^|`+"`", r) }

func (o origin) sourceOf(e Event) string {
	return strings.NewReplacer("{tenant}", url.PathEscape(e.TenantID), "{type}", url.PathEscape(e.Type)).Replace(o.source)
}

func (o origin) subjectOf(e Event) string {
	return strings.NewReplacer("{tenant}", e.TenantID, "{type}", e.Type).Replace(o.subject)
}

// toCloudEvent converts an event. An error is permanent, because it is about the event itself.
func (o origin) toCloudEvent(e Event) (cloudEvent, error) {
	if e.Key == uuid.Nil || e.Type == "" {
		return cloudEvent{}, fmt.Errorf("the event %.64q has no key or no type", e.ID)
	}
	c := cloudEvent{
		SpecVersion: "1.0", ID: e.Key.String(), Type: e.Type, Source: o.sourceOf(e), Subject: o.subjectOf(e),
		TenantID: e.TenantID, CorrelationID: e.CorrelationID,
	}
	if !e.CreatedAt.IsZero() {
		c.Time = e.CreatedAt.UTC().Format(time.RFC3339Nano)
	}
	// An invalid trace parent is dropped, because it must not block the event.
	if sent := traceparent.Clean(e.TraceParent); sent != "" {
		c.TraceParent = sent
	}
	if len(e.Payload) == 0 {
		return c, nil
	}
	// queues.Decode recognizes base64 only if it holds UTF-8.
	if !json.Valid(e.Payload) || !utf8.Valid(e.Payload) {
		return cloudEvent{}, fmt.Errorf("the payload of %d bytes is not JSON in UTF-8", len(e.Payload))
	}
	c.DataContentType, c.Data = jsonType, e.Payload
	return c, nil
}

// encode returns the JSON event format. The payload's text is unchanged apart from white space.
func (c cloudEvent) encode() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		return nil, fmt.Errorf("encode event %s: %w", c.ID, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// putHeaders writes the attributes as headers of the binary mode (CloudEvents HTTP binding, section 3.1.3).
func (c cloudEvent) putHeaders(h http.Header) {
	for _, a := range []struct{ name, value string }{
		{"ce-specversion", c.SpecVersion},
		{"ce-id", c.ID},
		{"ce-source", c.Source},
		{"ce-type", c.Type},
		{"ce-subject", c.Subject},
		{"ce-time", c.Time},
		{"ce-tenantid", c.TenantID},
		{"ce-correlationid", c.CorrelationID},
		{"ce-traceparent", c.TraceParent},
	} {
		if a.value != "" {
			h.Set(a.name, headerText(a.value))
		}
	}
}

// headerText percent-encodes the characters that the HTTP binding does not allow in a header (section 3.1.3.2).
func headerText(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(strings.ToValidUTF8(s, "\uFFFD")) {
		if c > ' ' && c < 0x7f && c != '"' && c != '%' {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
	}
	return b.String()
}
