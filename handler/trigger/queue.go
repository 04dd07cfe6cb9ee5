package trigger

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/queues"
)

func (q Queue) decode(body []byte, invocationID string) (invocation, error) {
	d, err := decodeDelivery(q, body, invocationID)
	if err != nil {
		return invocation{}, err
	}
	return q.invocation(d), nil
}

// invocation returns the work for a delivery.
func (q Queue) invocation(d engine.Delivery) invocation {
	inv := invocation{
		about:      &about{told: []slog.Attr{slog.String("messageId", d.ID), slog.Int("dequeueCount", d.DequeueCount)}},
		patience:   queuePatience,
		expendable: q.Expendable,
	}
	inv.run = func(ctx context.Context) error {
		return q.Handle(engine.WithReport(ctx, inv.about.add), d)
	}
	if q.PutBack != nil {
		inv.putBack = func(ctx context.Context, away time.Duration) error { return q.PutBack(ctx, d, away) }
	}
	if q.Acknowledge != nil && d.PopReceipt != "" {
		inv.acknowledge = func(ctx context.Context) error { return q.Acknowledge(ctx, d) }
	}
	return inv
}

// decodeDelivery reads the invocation of a queue function. Any metadata may be missing: a delivery without a count is
// the first, and one without a message id (an administrator's manual run) is a message of its own, named by its
// invocation.
func decodeDelivery(q Queue, body []byte, invocationID string) (engine.Delivery, error) {
	value, meta, err := decodeEnvelope(body, q.Parameter)
	if err != nil {
		return engine.Delivery{}, err
	}
	text, binary, err := messageText(value)
	if err != nil {
		return engine.Delivery{}, fmt.Errorf("value Data.%s: %w", q.Parameter, err)
	}
	if !binary {
		meta.dropOverwritten(text)
	}
	return engine.Delivery{
		Queue:        q.Queue,
		ID:           valueOr(meta.text("Id"), invocationID),
		PopReceipt:   meta.text("PopReceipt"),
		Body:         queues.Decode(text),
		DequeueCount: meta.count("DequeueCount"),
		InsertedAt:   meta.time("InsertionTime"),
	}, nil
}

// messageText finds the text of the queue message in the host's value, and reports whether it was the binary form.
// The forms, in the order in which they are tried:
//
//  1. a JSON string that is standard base64: the message's bytes, encoded once. dataType "binary", which all our
//     functions declare, produces it.
//  2. a JSON string that contains a JSON string: the text form of the host, encoded twice.
//  3. any other JSON string: the text itself, the form in the host's documentation.
//  4. any other JSON value: its JSON text.
//
// 1 and 2 exclude each other, since base64 has no quotation marks. A message in form 3 that resembles form 1 or 2 is
// treated as that; the host does not produce form 3.
func messageText(value json.RawMessage) (text string, binary bool, err error) {
	if value[0] != '"' {
		if string(value) == "null" {
			return "", false, errors.New("the message is null")
		}
		return string(value), false, nil
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", false, err
	}
	if raw, err := base64.StdEncoding.Strict().DecodeString(s); err == nil {
		return string(raw), true, nil
	}
	var inner string
	if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &inner) == nil {
		return inner, false, nil
	}
	return s, false, nil
}

// decodeEnvelope reads the value of the trigger binding and the metadata from the body of an invocation. Metadata
// that is not an object is ignored.
func decodeEnvelope(body []byte, parameter string) (value json.RawMessage, meta metadata, err error) {
	var envelope struct {
		Data     map[string]json.RawMessage
		Metadata json.RawMessage
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return nil, nil, fmt.Errorf("the body is not an invocation in JSON (%d bytes): %w", len(body), err)
	}
	value, ok := envelope.Data[parameter]
	if !ok {
		return nil, nil, fmt.Errorf("the invocation has no Data.%s: "+
			"the name of the trigger binding in function.json and the registered parameter must be the same", parameter)
	}
	if json.Unmarshal(envelope.Metadata, &meta) != nil || meta == nil {
		meta = metadata{}
	}
	return value, meta, nil
}
