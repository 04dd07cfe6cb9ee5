package poller

import (
	"context"
	"encoding/json"
)

// Cursor is a position in the order of a source. The zero Cursor is before the first row.
type Cursor struct {
	// Kind determines how Value is read: integer, timestamp, timestamp+pk, integer+pk, rowversion, xid8+seq, lsn or
	// opaque.
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
	// Deleted means that the row is marked as deleted.
	Deleted bool
}

// Batch is the result of a Fetch.
type Batch struct {
	// Rows are in the order of the source.
	Rows []Row
	// More means that more rows exist already.
	More bool
	// HeldBack is the reason why existing rows are not returned yet, for instance an older open transaction; "" when none
	// are known to be held back.
	HeldBack string
	// Through is a position after the cursor of the Fetch up to which no rows exist, zero when unknown. It is for a source
	// that needs to know how much it may forget: the poller occasionally makes it the checkpoint (Options.IdleHeartbeat).
	// Only a batch without rows and without More has it.
	Through Cursor
	// Retained is the number of bytes that the source keeps until the checkpoint advances, 0 for none or unknown. Only a
	// fetch that has looked returns it.
	Retained int64
	// Advice is a message for operators about a coming problem, "" for none.
	Advice string
}

// Definition describes a source, without credentials. The fingerprint is the hash of its text.
type Definition struct {
	// Database is the address of the database without credentials and options, and DatabaseID the database's own id. They
	// are "" when unknown. An unknown part matches everything, and the id takes precedence over the address.
	Database   string `json:"database,omitempty"`
	DatabaseID string `json:"databaseId,omitempty"`

	Dialect  string         `json:"dialect"`
	SourceID string         `json:"sourceId"`
	Object   string         `json:"object"` // schema.table, or the query
	Cursor   string         `json:"cursor"`
	Zone     string         `json:"cursorZone,omitempty"` // of a cursor column without a zone; "" is UTC
	Keys     []string       `json:"keys"`
	Deleted  string         `json:"deleted,omitempty"`
	Filter   string         `json:"filter,omitempty"`
	Params   map[string]any `json:"parameters,omitempty"`
	Bound    string         `json:"bound"` // how lost rows are prevented: xid, rowversion, settle, single-writer or slot
}

// Source is a database table or query that is read in the order of its commits. It is used by one goroutine at a time.
type Source interface {
	Definition() Definition
	// Check returns the errors of the definition: a missing column, or a key that is not unique. Its advice is for
	// operators, such as a useful index.
	Check(ctx context.Context) (advice []string, err error)
	// Fetch returns at most limit rows after a cursor, and at most maxBytes of Data, the first row excepted. It returns no
	// row before which another one can still appear.
	Fetch(ctx context.Context, after Cursor, limit, maxBytes int) (Batch, error)
	// End returns the cursor of the last row that Fetch would return now: the end of a backfill.
	End(ctx context.Context) (Cursor, error)
	Close() error
}

// Identifier is a Source whose database has its own id, such as that of its server with its number there. A runner
// queries it in each tick.
type Identifier interface {
	// DatabaseID returns the id, "" when the database does not show it.
	DatabaseID(ctx context.Context) (string, error)
}
