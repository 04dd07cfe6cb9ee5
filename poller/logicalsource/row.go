package logicalsource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pglogrepl"

	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// member is the member of Data with the Change.
const member = "$change"

// The kinds of changes.
const (
	opInsert   = "insert"
	opUpdate   = "update"
	opDelete   = "delete"
	opTruncate = "truncate"
)

// Change is the member "$change" of the data of a row.
type Change struct {
	// Op is insert, update, delete or truncate.
	Op string `json:"op"`
	// Table is schema.table.
	Table string `json:"table"`
	// CommittedAt is the commit's time by the clock of the database, and XID the transaction's number, which is reused
	// after 4,294,967,296 others.
	CommittedAt string `json:"committedAt"`
	XID         uint32 `json:"xid"`
	// OldKey has the old key columns when an update has changed them.
	OldKey json.RawMessage `json:"oldKey,omitempty"`
	// Unchanged are columns that an update has left unchanged and whose values are not in the log.
	Unchanged []string `json:"unchanged,omitempty"`
}

// relation is a table as of the following changes.
type relation struct {
	name    string
	columns []field
}

// field is a column of a relation.
type field struct {
	name []byte // "name": as JSON
	text string
	typ  columnType
	// key means that the column is part of the row's key, and logged that deletes and updates have its old value.
	key, logged bool
}

// relation reads the form of a table.
func (s *Source) relation(ctx context.Context, m *pglogrepl.RelationMessage) (*relation, error) {
	schema := m.Namespace
	if schema == "" {
		schema = "pg_catalog"
	}
	r := &relation{name: schema + "." + m.RelationName}
	primary := map[string]bool{}
	if m.ReplicaIdentity == 'f' {
		var err error
		if primary, err = s.primaryKey(ctx, m.RelationID); err != nil {
			return nil, fmt.Errorf("find the primary key of %s: %w", r.name, err)
		}
	}
	for _, c := range m.Columns {
		if c.Name == member {
			return nil, fmt.Errorf("%w: %s has a column %s, which is the name of a member of each row: rename the column, drop the slot and make it anew", ErrSetup, r.name, member)
		}
		typ, err := s.columnType(ctx, c.DataType)
		if err != nil {
			return nil, fmt.Errorf("find the type of %s.%s: %w", r.name, c.Name, err)
		}
		f := field{name: append(sqlsource.AppendText(nil, c.Name), ':'), text: c.Name, typ: typ, logged: c.Flags&1 != 0}
		f.key = f.logged && (len(primary) == 0 || primary[c.Name])
		r.columns = append(r.columns, f)
	}
	return r, nil
}

// row makes the row of a change. A column of new that is not in the log is taken from old, if that has all columns.
func (s *Source) row(ctx context.Context, r *relation, change Change, old, tuple *pglogrepl.TupleData) (row poller.Row, err error) {
	row.Deleted = change.Op == opDelete || change.Op == opTruncate
	if change.Op == opTruncate {
		row.Key = json.RawMessage("{}")
		row.Data, err = withChange(nil, change)
		return row, err
	}
	for _, t := range []*pglogrepl.TupleData{old, tuple} {
		if t != nil && len(t.Columns) != len(r.columns) {
			return row, fmt.Errorf("%w: a row has %d columns, and its table %d", ErrMessage, len(t.Columns), len(r.columns))
		}
	}
	cells := make([][]byte, len(r.columns))
	if change.Op == opDelete {
		if old == nil {
			return row, fmt.Errorf("%w: a delete without a key", ErrMessage)
		}
		if err := s.cells(ctx, r, old, cells, true); err != nil {
			return row, err
		}
		row.Key, row.Data = object(r, cells, true), object(r, cells, false)
	} else {
		if tuple == nil {
			return row, fmt.Errorf("%w: an %s without a row", ErrMessage, change.Op)
		}
		if err := s.cells(ctx, r, tuple, cells, false); err != nil {
			return row, err
		}
		if old != nil {
			before := make([][]byte, len(r.columns))
			if err := s.cells(ctx, r, old, before, true); err != nil {
				return row, err
			}
			for i := range cells {
				if cells[i] == nil {
					cells[i] = before[i]
				}
			}
			row.Key = object(r, cells, true)
			if key := object(r, before, true); !bytes.Equal(key, row.Key) {
				change.OldKey = key
			}
		}
		row.Key, row.Data = object(r, cells, true), object(r, cells, false)
		for i, cell := range cells {
			if cell == nil {
				change.Unchanged = append(change.Unchanged, r.columns[i].text)
			}
		}
	}
	row.Data, err = withChange(row.Data, change)
	return row, err
}

// cells encodes the values of a tuple as JSON, nil for missing ones. Of an old tuple only the logged columns count.
func (s *Source) cells(ctx context.Context, r *relation, t *pglogrepl.TupleData, cells [][]byte, old bool) error {
	var asked []int
	for i, c := range t.Columns {
		f := r.columns[i]
		if old && !f.logged {
			continue
		}
		switch c.DataType {
		case pglogrepl.TupleDataTypeNull:
			cells[i] = []byte("null")
		case pglogrepl.TupleDataTypeToast:
		case pglogrepl.TupleDataTypeText:
			if f.typ.cast != "" {
				asked = append(asked, i)
				continue
			}
			cells[i] = f.typ.write(string(c.Data))
		default:
			return fmt.Errorf("%w: column %s has the format %.1q", ErrMessage, f.text, c.DataType)
		}
	}
	return s.ask(ctx, r, t, asked, cells)
}

// object encodes a JSON object of the columns with a value, or of the key columns among them.
func object(r *relation, cells [][]byte, keys bool) json.RawMessage {
	out := []byte{'{'}
	for i, cell := range cells {
		if cell == nil || keys && !r.columns[i].key {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, r.columns[i].name...), cell...)
	}
	return append(out, '}')
}

// withChange adds the change to an object.
func withChange(data json.RawMessage, change Change) (json.RawMessage, error) {
	text, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	out := []byte{'{'}
	if len(data) > 2 {
		out = append(data[:len(data)-1], ',')
	}
	out = append(append(out, `"`+member+`":`...), text...)
	return append(out, '}'), nil
}
