package poller

import (
	"context"
	"encoding/json"
)

// Cursor is a position in the order of a source. The zero Cursor is before the first row.
type Cursor struct {
	// Kind says how to read Value: integer, timestamp, timestamp+pk, integer+pk, rowversion, xid8+seq, lsn or opaque.
	Kind string `json:"kind,omitempty"`
	// Value is the value of the cursor column with all of its digits, as canonical text.
	Value string `json:"value,omitempty"`
	// Tiebreaker is a JSON object with the key columns of the row at this position; nil when the value alone is unique.
	Tiebreaker json.RawMessage `json:"tiebreaker,omitempty"`
}

// Row is one row that a source has read.
type Row struct {
	Cursor Cursor
	// Key is a JSON object with the key columns, Data with all columns; numbers have all of their digits.
	Key, Data json.RawMessage
	// Deleted says that the row is marked as deleted.
	Deleted bool
}

// Batch is the result of a Fetch.
type Batch struct {
	// Rows are in the order of the source.
	Rows []Row
	// More says that more rows exist already.
	More bool
	// HeldBack says why existing rows are not returned yet, for instance because an older transaction is open; "" when
	// none are known to be held back.
	HeldBack string
	// Through is a place behind the cursor of the Fetch up to which there are no rows, zero when none is known. It is for a source that
	// has to be told how far it may forget: the poller makes it the checkpoint once in a while (Options.IdleHeartbeat). Only a batch
	// without rows and without More has it.
	Through Cursor
	// Retained is how many bytes the source keeps until the checkpoint has come further, 0 when it keeps none or does not say. Only the
	// batch of a fetch that has looked has it.
	Retained int64
	// Advice is for people: something that will become a problem, "" for nothing.
	Advice string
}

// Definition is what a source reads, without credentials. The fingerprint is the hash of its text.
type Definition struct {
	// Database is the address of the database without credentials and options, and DatabaseID the id that the database has for itself.
	// They are "" when they are unknown. An unknown part matches everything, and the id counts for more than the address.
	Database   string `json:"database,omitempty"`
	DatabaseID string `json:"databaseId,omitempty"`

	Dialect  string         `json:"dialect"`
	SourceID string         `json:"sourceId"`
	Object   string         `json:"object"` // schema.table, or the query
	Cursor   string         `json:"cursor"`
	Zone     string         `json:"cursorZone,omitempty"` // of a cursor column that has none; "" is UTC
	Keys     []string       `json:"keys"`
	Deleted  string         `json:"deleted,omitempty"`
	Filter   string         `json:"filter,omitempty"`
	Params   map[string]any `json:"parameters,omitempty"`
	Bound    string         `json:"bound"` // how lost rows are prevented: xid, rowversion, settle, single-writer or slot
}

// Source is a database table or query that is read in the order of its commits. It is used by one goroutine at a time.
type Source interface {
	Definition() Definition
	// Check returns what is wrong with the definition: a missing column, or a key that is not unique. Its advice is for
	// people, such as an index that would help.
	Check(ctx context.Context) (advice []string, err error)
	// Fetch returns at most limit rows behind a cursor, and at most maxBytes of Data, the first row excepted. It
	// returns no row before which another one can still appear.
	Fetch(ctx context.Context, after Cursor, limit, maxBytes int) (Batch, error)
	// End returns the cursor of the last row that Fetch would return now: where a backfill ends.
	End(ctx context.Context) (Cursor, error)
	Close() error
}

// Identifier is a Source whose database has an id of its own, such as that of its server and its number there. A runner asks for it in
// each tick.
type Identifier interface {
	// DatabaseID returns the id, "" when the database does not show it.
	DatabaseID(ctx context.Context) (string, error)
}
