package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/internal/traceparent"
)

// MaxMessage bounds the body of a message in bytes. It leaves room for the header of a requeued message: together
// they fit a queue message. Larger data travels as a reference.
const MaxMessage = 47 << 10

// Message is the envelope that producers send to an engine's queue, as a JSON object. Unknown fields are ignored, so
// producers may add their own.
type Message struct {
	// CorrelationID identifies the run; messages with the same one are the same work. A missing one is derived from
	// the message id, so that a redelivery has the same.
	CorrelationID string `json:"correlationId,omitempty"`
	// Engine is the engine that the message is for; the default is the engine of the queue.
	Engine string `json:"engine,omitempty"`
	// Operation is the requested operation, for engines with more than one.
	Operation string `json:"operation,omitempty"`
	// InstanceID is the managed instance to work on; the default is PublisherInstance.
	InstanceID string `json:"instanceId,omitempty"`
	TenantID   string `json:"tenantId,omitempty"`
	// Input is the input in the engine's own format.
	Input json.RawMessage `json:"input,omitempty"`
	// Blob names the blob that holds the input instead, when that is too large for a message; see Claims.
	Blob string `json:"blob,omitempty"`
	// NaturalKey means that the correlation id is the natural key of the input, so repeats may differ in details. It
	// counts for engines that adapt messages; adapted messages have it.
	NaturalKey bool `json:"naturalKey,omitempty"`
	// TraceParent is the sender's W3C trace context, which the run joins; an invalid one is ignored.
	TraceParent string `json:"traceparent,omitempty"`
}

// correlationSpace is the UUID name space of derived correlation ids (RFC 9562, version 5).
var correlationSpace = uuid.MustParse("2c8f4f0b-6f43-5d3c-9b36-0a6f6a3f9d55")

// DeriveCorrelationID returns the same id for the same natural key: kind is the kind of key, and parts are the key. It
// is for senders that have no correlation id of their own.
func DeriveCorrelationID(kind string, parts ...string) string {
	key := []byte(kind)
	for _, part := range parts {
		// Lengths keep ("a", "bc") and ("ab", "c") apart.
		key = fmt.Appendf(key, ":%d:%s", len(part), part)
	}
	return uuid.NewSHA1(correlationSpace, key).String()
}

// ofSchedules is the prefix of the correlation ids of schedules. Starts and intakes are refused such ids, so callers cannot block an
// occurrence by using its id first.
const ofSchedules = "schedule-"

// ScheduleCorrelationID is DeriveCorrelationID for the messages of schedules. Callers of the API cannot use the ids that it returns.
func ScheduleCorrelationID(kind string, parts ...string) string {
	return ofSchedules + DeriveCorrelationID(kind, parts...)
}

// checkOutsideID checks a correlation id that a caller of the API or the sender of an intake has chosen.
func checkOutsideID(id string) error {
	if strings.HasPrefix(id, ofSchedules) {
		return fmt.Errorf("correlation ids that begin with %s are those of schedules: use another", ofSchedules)
	}
	return checkID("correlation id", id)
}

// TenantCorrelationID converts an id that a tenant chose to one in the tenant's namespace, so tenants neither share nor discover ids. It
// returns an id that is in that namespace already unchanged.
func TenantCorrelationID(tenantID, id string) string {
	// A colon ends the tenant, so that no tenant's name and id are another's.
	prefix := strings.NewReplacer("%", "%25", ":", "%3a").Replace(strings.ToLower(tenant.Fold(cleanText(tenantID)))) + ":"
	derived := DeriveCorrelationID("tenant", prefix, id)
	switch {
	case strings.HasPrefix(id, prefix):
		return id
	case len(prefix)+len(id) <= MaxIDLength:
		return prefix + id
	case len(prefix)+len(derived) <= MaxIDLength:
		return prefix + derived
	default:
		return derived
	}
}

// OrderKey returns the order key for events about something with an id, such as an instance. It is the id, or a digest
// of it, because ids in Azure can be longer than an order key may be.
func OrderKey(id string) string {
	if len(id) <= MaxIDLength {
		return id
	}
	return DeriveCorrelationID("order-key", id)
}

// deriveCorrelationID returns the same id for the same message id.
func deriveCorrelationID(messageID string) string {
	return uuid.NewSHA1(correlationSpace, []byte("message:"+messageID)).String()
}

// decodeMessage decodes the body of a message. Even with an error, the correlation id and the instance id can be used.
func (d Definition) decodeMessage(body []byte, messageID string) (Message, error) {
	m, err := d.parseMessage(body)
	if m.CorrelationID == "" || checkID("correlation id", m.CorrelationID) != nil {
		m.CorrelationID = deriveCorrelationID(messageID)
	}
	if err != nil {
		m.TenantID = "" // only the platform sees unreadable messages
	}
	m.TraceParent = traceparent.Clean(m.TraceParent)
	if m.InstanceID == "" && err == nil {
		m.InstanceID = PublisherInstance
	}
	if len(m.InstanceID) > MaxInstanceIDLength {
		m.InstanceID = ""
	}
	return m, err
}

func (d Definition) parseMessage(body []byte) (Message, error) {
	var m Message
	body = bytes.TrimPrefix(body, []byte(payload.ByteOrderMark))
	if len(body) > MaxMessage {
		return m, fmt.Errorf("the message has %d bytes, %d are allowed: send a reference to what is large: %w", len(body), MaxMessage, errTooLarge)
	}
	if !utf8.Valid(body) {
		return m, errors.New("the message is not UTF-8")
	}
	if err := payload.Check(body); err != nil {
		return m, fmt.Errorf("the message cannot be stored: %w", err)
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return m, errors.New("the message is not a JSON object")
	}
	m, err := d.adapt(body)
	if err != nil {
		return m, fmt.Errorf("the message cannot be decoded: %w", err)
	}
	var errs []error
	if m.CorrelationID != "" {
		errs = append(errs, checkID("correlation id", m.CorrelationID))
	}
	errs = append(errs,
		checkLength("operation", m.Operation, MaxInstanceIDLength),
		checkLength("instance id", m.InstanceID, MaxInstanceIDLength),
		checkTenant(m.TenantID))
	return m, errors.Join(errs...)
}

// adapt decodes a foreign body, or else the envelope.
func (d Definition) adapt(body []byte) (Message, error) {
	if d.Adapt != nil {
		if m, ok, err := d.Adapt(body); ok || err != nil {
			if err == nil {
				_, err = m.encode() // the message may be nested deeper than its body
			}
			m.NaturalKey = true
			return m, err
		}
	}
	m, err := envelopeOf(body)
	if err == nil && m.Blob != "" && len(m.Input) > 0 {
		err = errors.New("it has both an input and a blob with the input")
	}
	return m, err
}

// envelopeOf decodes an envelope. A duplicate member, in any case, is an error: the intended value is unknown.
func envelopeOf(body []byte) (Message, error) {
	var m Message
	if err := json.Unmarshal(body, &m); err != nil {
		return m, payload.Explain(err)
	}
	seen := map[string]bool{}
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		token, err := d.Token()
		name, isName := token.(string)
		if delim, ok := token.(json.Delim); ok && delim == '{' {
			continue
		}
		if err != nil || !isName {
			return m, nil // its end
		}
		if name = strings.ToLower(name); seen[name] && isMember(name) {
			return Message{}, fmt.Errorf("the member %q is there twice: send it once", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return Message{}, payload.Explain(err)
		}
	}
}

// isMember reports whether the envelope has a member of this name, in any case.
func isMember(name string) bool {
	for field := range reflect.TypeFor[Message]().Fields() {
		if member, _, _ := strings.Cut(field.Tag.Get("json"), ","); strings.EqualFold(member, name) {
			return true
		}
	}
	return false
}

// encode returns the message in the form of queues and runs. The errors are those of payload.Check, so a run can
// store every encoded message.
func (m Message) encode() ([]byte, error) {
	if err := payload.Check(m.Input); err != nil { // checked first, because the error of the encoder would not name the limit
		return nil, err
	}
	text, err := payload.Marshal(m)
	if err == nil {
		err = payload.Check(text)
	}
	return text, err
}

// errTooLarge marks a message that is too large as a whole.
var errTooLarge = errors.New("over size")

// reasonOf returns the machine-readable reason why a message could not be decoded.
func reasonOf(err error) Reason {
	if errors.Is(err, errTooLarge) || errors.Is(err, ErrIDTooLong) || errors.Is(err, payload.ErrTooLarge) {
		return ReasonOverSize
	}
	return ReasonUndecodable
}
