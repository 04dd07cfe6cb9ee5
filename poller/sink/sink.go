// Package sink is where the rows of a poller go: Engine sends them to the queue of an engine, Outbox adds them to the
// outbox as events, and DeadLetters takes those that nobody takes.
//
// It promises what a poller does, at least once: a row that comes again has the same correlation id, key and message id,
// and whoever receives it finds that it is known. It owns no storage: queues, the outbox and the dead letters are those of
// the packages that it is given.
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

// correlationKind is what correlation ids of rows are derived of.
const correlationKind = "poller"

// Event is a row as engines and receivers of events get it.
type Event struct {
	// ID is the same for the same poller, key and place.
	ID     string          `json:"id"`
	Poller string          `json:"poller"`
	Key    json.RawMessage `json:"key"`
	Cursor poller.Cursor   `json:"cursor"`
	// Deleted says that the row is marked as deleted. Data has all columns.
	Deleted bool            `json:"deleted,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	// DataSize is the length of data that is left out because it is long or nested too deep, as only a dead letter does.
	DataSize int `json:"dataSize,omitempty"`
}

func eventOf(name, id string, row poller.Row) Event {
	return Event{ID: id, Poller: name, Key: row.Key, Cursor: row.Cursor, Deleted: row.Deleted, Data: row.Data}
}

// CorrelationID is that of everything that comes of a row.
func CorrelationID(name, id string) string {
	return engine.DeriveCorrelationID(correlationKind, name, id)
}

// column is the text of a column of a row, or otherwise when the column is "".
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

// cell is a column of a row: texts without quotes, all else as it stands in JSON, nil for NULL.
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

// permanentIf marks an error as one that no further try can help, if it is one of these.
func permanentIf(err error, kinds ...error) error {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return poller.Permanent(err)
		}
	}
	return err
}
