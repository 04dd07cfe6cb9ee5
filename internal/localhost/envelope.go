package localhost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// envelope is the body of an invocation that is not a forwarded request.
type envelope struct {
	Data     map[string]json.RawMessage
	Metadata map[string]json.RawMessage
}

// newEnvelope starts an invocation's body with the common members.
func newEnvelope(function string, now time.Time) envelope {
	return envelope{
		Data: map[string]json.RawMessage{},
		Metadata: map[string]json.RawMessage{"sys": encode(map[string]string{
			"MethodName": function,
			"UtcNow":     now.UTC().Format("2006-01-02T15:04:05.9999999Z"),
			"RandGuid":   uuid.NewString(),
		})},
	}
}

// encode returns JSON without the escapes for HTML, which the real host does not write either.
func encode(value any) json.RawMessage {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return json.RawMessage("null") // unreachable: the values are strings, maps and JSON
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}

// nested encodes every value but objects, bytes and dates: as a JSON string that holds the JSON text of the value.
func nested(value any) json.RawMessage { return encode(string(encode(value))) }

// dateTime is a DateTimeOffset as the real host writes it; its own dates in metadata have whole seconds.
type dateTime struct{ time.Time }

const dateTimeLayout = "2006-01-02T15:04:05.9999999-07:00"

// MarshalJSON implements [json.Marshaler].
func (t dateTime) MarshalJSON() ([]byte, error) {
	return json.Marshal(t.Format(dateTimeLayout))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *dateTime) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := time.Parse(time.RFC3339, text)
	t.Time = parsed
	return err
}

func wholeSecond(t time.Time) json.RawMessage {
	return encode(dateTime{t.UTC().Truncate(time.Second)})
}

// lastDate replaces a time that storage does not return.
var lastDate = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func orLast(t time.Time) time.Time {
	if t.IsZero() {
		return lastDate
	}
	return t
}

// errNotText is the error of a function that requires text and got a binary message.
var errNotText = errors.New("the message is not UTF-8, which the function's dataType requires: use dataType binary")

// put adds the trigger's value as the binding's data type requires. Text that is a JSON object also copies its members
// into the metadata, over existing ones.
func (e envelope) put(b binding, body []byte) error {
	if b.DataType == "binary" {
		e.Data[b.Name] = encode(body)
		return nil
	}
	if !utf8.Valid(body) {
		return errNotText
	}
	e.Data[b.Name] = nested(string(body))
	e.spill(body)
	return nil
}

// spill copies the members of a JSON object into the metadata. Arrays and nulls are left out, objects stay objects,
// and scalars become text the way .NET prints them.
func (e envelope) spill(text []byte) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var members map[string]any
	if err := decoder.Decode(&members); err != nil || decoder.More() {
		return
	}
	for name, value := range members {
		switch v := value.(type) {
		case map[string]any:
			e.meta(name, encode(v))
		case string:
			e.meta(name, nested(dotNetText(v)))
		case bool:
			e.meta(name, nested(map[bool]string{true: "True", false: "False"}[v]))
		case json.Number:
			e.meta(name, nested(dotNetNumber(v)))
		}
	}
}

// meta sets a member of the metadata; names that differ only by case are the same, and the first spelling stays. Names
// that end in "trigger" are never delivered.
func (e envelope) meta(name string, value json.RawMessage) {
	if strings.HasSuffix(strings.ToLower(name), "trigger") {
		return
	}
	for present := range e.Metadata {
		if strings.EqualFold(present, name) {
			name = present
			break
		}
	}
	e.Metadata[name] = value
}

// dotNetText rewrites a text that looks like an ISO date, because the real host's JSON reader takes it for one.
func dotNetText(text string) string {
	const printed = "01/02/2006 15:04:05"
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		if strings.HasSuffix(text, "Z") {
			return t.Format(printed)
		}
		return t.Local().Format(printed)
	}
	if t, err := time.Parse("2006-01-02T15:04:05", text); err == nil {
		return t.Format(printed)
	}
	return text
}

// dotNetNumber prints whole numbers as they are and fractions in their shortest form.
func dotNetNumber(number json.Number) string {
	text := number.String()
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	scientific := strconv.FormatFloat(f, 'E', -1, 64)
	_, exponent, _ := strings.Cut(scientific, "E")
	if n, err := strconv.Atoi(exponent); err != nil || n <= -5 || n >= 15 {
		return scientific
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// queueDelivery is a message as its trigger delivers it. Zero times and an empty id are values that the host does not
// know, as in a manual invocation.
type queueDelivery struct {
	id, popReceipt                 string
	dequeueCount                   int64
	inserted, expires, nextVisible time.Time
	body                           []byte
}

// queueEnvelope is the body of a queue-triggered invocation.
func queueEnvelope(f *function, d queueDelivery, now time.Time) (envelope, error) {
	e := newEnvelope(f.name, now)
	e.Metadata["DequeueCount"] = nested(d.dequeueCount)
	e.Metadata["ExpirationTime"] = wholeSecond(orLast(d.expires))
	e.Metadata["InsertionTime"] = wholeSecond(d.inserted)
	e.Metadata["NextVisibleTime"] = wholeSecond(orLast(d.nextVisible))
	if d.id != "" {
		e.Metadata["Id"] = nested(d.id)
		e.Metadata["PopReceipt"] = nested(d.popReceipt)
	}
	if err := e.put(f.trigger, d.body); err != nil {
		return envelope{}, fmt.Errorf("bind message %s: %w", d.id, err)
	}
	return e, nil
}

// timerEnvelope is the body of a timer invocation; a nil status is a timer without a stored state.
func timerEnvelope(f *function, s schedule, status *timerStatus, pastDue bool, now time.Time) envelope {
	e := newEnvelope(f.name, now)
	e.Data[f.trigger.Name] = encode(map[string]any{
		"Schedule":       map[string]bool{"AdjustForDST": s.adjustsForDST()},
		"ScheduleStatus": status,
		"IsPastDue":      pastDue,
	})
	return e
}

// manualEnvelope is the body of a function that is only invoked manually; it gets its input twice, and never as bytes.
func manualEnvelope(f *function, input string, now time.Time) (envelope, error) {
	e := newEnvelope(f.name, now)
	text := f.trigger
	text.DataType = ""
	e.meta(text.Name, nested(input))
	if err := e.put(text, []byte(input)); err != nil {
		return envelope{}, fmt.Errorf("bind the input: %w", err)
	}
	return e, nil
}
