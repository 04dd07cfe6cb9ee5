package poller

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// DefaultTable is the table of the state documents.
const DefaultTable = "dbState"

const (
	stateRow       = "state"
	columnDocument = "Document"
)

// TableStore keeps state documents as rows of a table. Tables is required.
type TableStore struct {
	Tables tables.Store
	// Table defaults to DefaultTable.
	Table string
}

var _ Store = TableStore{}

func (s TableStore) table() string { return cmp.Or(s.Table, DefaultTable) }

// Create creates the table if it is missing.
func (s TableStore) Create(ctx context.Context) error {
	if err := s.Tables.CreateTable(ctx, s.table()); err != nil {
		return fmt.Errorf("create the table of poller states: %w", err)
	}
	return nil
}

// Load reads a document.
func (s TableStore) Load(ctx context.Context, poller string) (State, error) {
	if err := CheckName(poller); err != nil {
		return State{}, err
	}
	var response tables.Response
	row, err := s.Tables.Get(tables.WithCaptureResponse(ctx, &response), s.table(), tables.Key{Partition: poller, Row: stateRow})
	state, err := stateFromLoad(poller, []byte(tables.Text(row, columnDocument)), err, &response)
	if err == nil {
		state.ETag = row.ETag // the ETag of the body, because writes have to send that and not the header's
	}
	return state, err
}

// Swap replaces a version of a document.
func (s TableStore) Swap(ctx context.Context, poller string, data []byte, etag string) (State, error) {
	if err := CheckName(poller); err != nil {
		return State{}, err
	}
	row := tables.Entity{Key: tables.Key{Partition: poller, Row: stateRow}, ETag: etag, Properties: map[string]any{}}
	tables.PutText(row.Properties, columnDocument, string(data))
	write := tables.Replace(row)
	if etag == "" {
		write = tables.Insert(row)
	}
	var response tables.Response
	err := s.Tables.Apply(tables.WithCaptureResponse(ctx, &response), s.table(), write)
	if _, row := errors.AsType[*tables.OpError](err); row && errors.Is(err, tables.ErrNotFound) {
		err = fmt.Errorf("%w: %w", tables.ErrPrecondition, err)
	}
	return stateFromSwap(poller, data, err, &response)
}

// List returns the names of the pollers.
func (s TableStore) List(ctx context.Context) ([]string, error) {
	var out []string
	for row, err := range tables.ScanAll(ctx, s.Tables, s.table(), tables.Scan{Row: stateRow}) {
		switch {
		case errors.Is(err, tables.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("list the states of pollers: %w", err)
		}
		if CheckName(row.Partition) == nil {
			out = append(out, row.Partition)
		}
	}
	return out, nil
}
