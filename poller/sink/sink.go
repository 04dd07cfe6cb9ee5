// Package sink has the targets of a poller's rows: Engine sends them to the queue of an engine, Outbox adds them to the
// outbox as events, and DeadLetters stores rejected ones.
//
// Delivery is at least once, as for pollers: a repeated row has the same correlation id, key and message id, so its
// receiver recognizes it. The package owns no storage: queues, the outbox and the dead letters are those of the given
// packages.
package sink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/poller"
)

// correlationKind is the kind from which correlation ids of rows are derived.
const correlationKind = "poller"

// Event is a row as received by engines and receivers of events.
type Event struct {
	// ID is the same for the same poller, key and position.
	ID     string          `json:"id"`
	Poller string          `json:"poller"`
	Key    json.RawMessage `json:"key"`
	Cursor poller.Cursor   `json:"cursor"`
	// Deleted means that the row is marked as deleted. Data has all columns.
	Deleted bool            `json:"deleted,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	// DataSize is the length of data that a dead letter omits because it is long or nested too deep.
	DataSize int `json:"dataSize,omitempty"`
}

func eventOf(name, id string, row poller.Row) Event {
	return Event{ID: id, Poller: name, Key: row.Key, Cursor: row.Cursor, Deleted: row.Deleted, Data: row.Data}
}

// CorrelationID returns the correlation id of a row's effects.
func CorrelationID(name, id string) string {
	return engine.DeriveCorrelationID(correlationKind, name, id)
}

// column returns the text of a column of a row, or otherwise when the column is "".
func column(row poller.Row, name, otherwise string) (string, error) {
	if name == "" {
		return otherwise, nil
	}
	value, err := cell(row, name)
	if err == nil && value == nil {
		err = poller.Permanent(fmt.Errorf("row %.256s has no value in column %s", row.Key, name))
	}
	return string(value), err
}

// cell returns a column of a row: texts without quotes, other values as in JSON, nil for NULL.
func cell(row poller.Row, name string) ([]byte, error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(row.Data, &columns); err != nil {
		return nil, poller.Permanent(fmt.Errorf("read the columns of row %.256s: %w", row.Key, payload.Explain(err)))
	}
	value, there := columns[name]
	switch {
	case !there:
		return nil, poller.Permanent(fmt.Errorf("row %.256s has no column %s", row.Key, name))
	case bytes.Equal(value, []byte("null")):
		return nil, nil
	case len(value) > 0 && value[0] == '"':
		var text string
		err := json.Unmarshal(value, &text)
		return []byte(text), err
	}
	return value, nil
}

// permanentIf marks an error as permanent if it is one of these.
func permanentIf(err error, kinds ...error) error {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return poller.Permanent(err)
		}
	}
	return err
}
