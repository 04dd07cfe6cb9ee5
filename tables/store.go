package tables

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// These errors can be returned by every Store. Test for them with errors.Is; an *OpError names the operation that
// failed. They are the same values in the packages tables, queues and blobs.
var (
	// ErrNotFound means that the entity or the table does not exist.
	ErrNotFound = storage.ErrNotFound
	// ErrExists means that an insert found an entity with its key. The caller may have inserted it: the adapter repeats a
	// request whose answer was lost, and a caller does so after ErrOutcomeUnknown. Read the entity to find out.
	ErrExists = storage.ErrExists
	// ErrPrecondition means that the entity has changed since its ETag was read, possibly by the caller's own request, as
	// with ErrExists.
	ErrPrecondition = storage.ErrPrecondition
	// ErrTooLarge means that an entity, property or transaction exceeds a limit of the service. Do not retry.
	ErrTooLarge = storage.ErrTooLarge
	// ErrInvalid means that the service rejects this key, property, filter or transaction. Do not retry.
	ErrInvalid = storage.ErrInvalid
	// ErrDenied means that the service rejects the credential; nothing was applied.
	ErrDenied = storage.ErrDenied
	// ErrThrottled means that the service is busy; the operation was not applied. Retry later.
	ErrThrottled = storage.ErrThrottled
	// ErrOutcomeUnknown means that no answer came: the operation may or may not have been applied. Read before retrying.
	ErrOutcomeUnknown = storage.ErrOutcomeUnknown
)

// Key addresses an entity in its table. Each part has 1 to 512 UTF-16 units and may not hold / \ # ? % ' or control
// characters (the service refuses the first four, URLs in transactions garble the other two). Build parts from outside
// data with EscapeKey.
type Key struct {
	Partition string
	Row       string
}

// String returns the key for errors and logs.
func (k Key) String() string { return k.Partition + "/" + k.Row }

// Entity is one row. A property is a string, bool, int32, int64, float64, time.Time (UTC, 100 ns, year 1601 or later)
// or []byte; nil properties are not stored.
type Entity struct {
	Key
	// ETag is opaque and set by reads; Replace and Delete compare it. "" allows any version.
	ETag       string
	Properties map[string]any
}

// OpKind is the kind of an Op.
type OpKind int

// Insert, Replace, Upsert and Delete make Ops of these kinds.
const (
	OpInsert  OpKind = iota + 1 // ErrExists when the key is taken
	OpReplace                   // ErrNotFound when missing; ErrPrecondition when Entity.ETag is set and differs
	OpUpsert                    // insert, or replace the existing entity; Entity.ETag is ignored
	OpDelete                    // as OpReplace
)

// Op is one change of one entity.
type Op struct {
	Kind   OpKind
	Entity Entity
}

// Query selects entities of one partition in ascending row order.
type Query struct {
	Partition string
	// From and To bound the rows: From <= row < To. Empty means no bound.
	From, To string
	// Where holds property equalities, all of which must hold; a missing property is not equal to anything. A property
	// must have the same type in all rows: comparisons with other types are undefined. At most 12 equalities, of at most
	// 512 UTF-16 units or bytes each.
	Where map[string]any
	// Select names the properties to return, 252 at most; empty: all.
	Select []string
	// Limit bounds the page, 1 to 1000; 0 means 1000.
	Limit int
	// Continuation is Page.Next of the previous page; it is valid with the same query only.
	Continuation string
}

// Scan selects the entities of many partitions that have the same row key, in ascending partition order, for example a
// list of instances with one partition each. Its cost depends on the rows that it passes, not on those that it finds.
// The service reads all rows of the partitions in range, and ends a page at a time limit or at the end of a partition
// server. So a page may be short, even empty, and still have a Next. Bound the partitions where their keys allow it
// (PrefixEnd), and avoid frequent scans.
type Scan struct {
	// Row is the row key of the entities. AnyRow selects rows of any key instead.
	Row    string
	AnyRow bool
	// FromPartition and ToPartition bound the partitions: FromPartition <= partition < ToPartition. Empty means no
	// bound.
	FromPartition, ToPartition string
	// Where holds property equalities, as in a Query. NotBefore holds time properties and their lower bounds: an entity
	// with an earlier time (compared by the millisecond) or without the property is left out. Both together have as many
	// entries as a Query's Where.
	Where     map[string]any
	NotBefore map[string]time.Time
	// Select names the properties to return, 252 at most; empty: all.
	Select []string
	// Limit bounds the page, 1 to 1000; 0 means 1000.
	Limit int
	// Continuation is Page.Next of the previous page; it is valid with the same scan only.
	Continuation string
}

// Page is one answer to a Query or a Scan. It may hold fewer entities than the limit, even none, and still have a Next.
type Page struct {
	Entities []Entity
	// Next continues the query or the scan; "" on the last page.
	Next string
}

// Store is the part of Azure Table Storage that this program uses. Implementations are safe for concurrent use. They
// neither keep nor share arguments and results: the caller may change both.
type Store interface {
	// CreateTable creates a table if it is missing.
	CreateTable(ctx context.Context, table string) error
	// Get reads one entity. The error may be ErrNotFound.
	Get(ctx context.Context, table string, key Key) (Entity, error)
	// Query reads one page.
	Query(ctx context.Context, table string, q Query) (Page, error)
	// Scan reads one page over many partitions. Changes between two pages may be seen or not; no entity is seen twice.
	Scan(ctx context.Context, table string, s Scan) (Page, error)
	// Apply applies all operations or none. One operation is a plain request; several are one entity group transaction
	// (one partition, at most 100 operations and 4 MiB, each row once). The error is an *OpError when one operation is
	// the cause.
	Apply(ctx context.Context, table string, ops ...Op) error
}
