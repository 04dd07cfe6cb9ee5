package poller

import (
	"context"
	"encoding/json"
)

// Cursor is a place in a source's order. The zero Cursor is before the first row.
type Cursor struct {
	// Kind says how Value is to be read: integer, timestamp, timestamp+pk, integer+pk, rowversion, xid8+seq or opaque.
	Kind string `json:"kind,omitempty"`
	// Value is that of the cursor column with all of its digits, as canonical text.
	Value string `json:"value,omitempty"`
	// Tiebreaker is a JSON object of the key columns of the row at the place; nil where the value alone is unique.
	Tiebreaker json.RawMessage `json:"tiebreaker,omitempty"`
}

// Row is one row that a source has found.
type Row struct {
	Cursor Cursor
	// Key is a JSON object of the key columns, Data of all columns, with every digit of every number.
	Key, Data json.RawMessage
	// Deleted says that the row is marked as deleted.
	Deleted bool
}

// Batch is what a Fetch gives.
type Batch struct {
	// Rows are in the source's order, each behind the one before.
	Rows []Row
	// More says that there are more rows already.
	More bool
	// HeldBack says why rows that are there are not given yet, "" when none are known to be: an older transaction is open.
	HeldBack string
}

// Definition is what a source reads, without where it is and as whom: its text decides the fingerprint.
type Definition struct {
	Dialect  string         `json:"dialect"`
	SourceID string         `json:"sourceId"`
	Object   string         `json:"object"` // schema.table, or the query
	Cursor   string         `json:"cursor"`
	Keys     []string       `json:"keys"`
	Deleted  string         `json:"deleted,omitempty"`
	Filter   string         `json:"filter,omitempty"`
	Params   map[string]any `json:"parameters,omitempty"`
	Bound    string         `json:"bound"` // how lost rows are prevented: xid, rowversion, settle or single-writer
}

// Source is a database table or query that is read in the order of its commits. It is used by one goroutine at a time.
type Source interface {
	Definition() Definition
	// Check reports what is wrong with the definition: a missing column, a key that is not unique. Advice is for people, such
	// as an index that would help.
	Check(ctx context.Context) (advice []string, err error)
	// Fetch gives at most limit rows behind a place, and at most maxBytes of Data but for the first row. It gives no row that
	// another one could still come in front of.
	Fetch(ctx context.Context, after Cursor, limit, maxBytes int) (Batch, error)
	// End is the place of the last row that Fetch would give now: where a backfill ends.
	End(ctx context.Context) (Cursor, error)
	Close() error
}
