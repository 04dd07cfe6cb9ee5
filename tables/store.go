package tables

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/internal/storage"
)

// These errors can be returned by every Store. Test for them with errors.Is; an *OpError says which operation failed.
// They are the same values in the packages tables, queues and blobs.
var (
	// ErrNotFound: no such entity, or no such table.
	ErrNotFound = storage.ErrNotFound
	// ErrExists: an entity with the key of an insert exists already. It may be the caller's own: the adapter repeats a
	// request whose answer was lost, and a caller does so after ErrOutcomeUnknown. Read the entity to find out.
	ErrExists = storage.ErrExists
	// ErrPrecondition: the entity has changed since its ETag was read, possibly by the caller's own request, as with
	// ErrExists.
	ErrPrecondition = storage.ErrPrecondition
	// ErrTooLarge: an entity, property or transaction exceeds a limit of the service; repeating it cannot help.
	ErrTooLarge = storage.ErrTooLarge
	// ErrInvalid: the service does not accept this key, property, filter or transaction; repeating it cannot help.
	ErrInvalid = storage.ErrInvalid
	// ErrDenied: the service refuses the credential; nothing was applied.
	ErrDenied = storage.ErrDenied
	// ErrThrottled: the service is busy and the operation was not applied; repeat it later.
	ErrThrottled = storage.ErrThrottled
	// ErrOutcomeUnknown: no answer; the operation may or may not have been applied. Read before repeating.
	ErrOutcomeUnknown = storage.ErrOutcomeUnknown
)

// Key addresses an entity in its table. Each part has 1 to 512 UTF-16 units and may not hold / \ # ? % ' or control
// characters (the service refuses the first four, URLs in transactions garble the other two): build parts that come
// from outside with EscapeKey.
type Key struct {
	Partition string
	Row       string
}

// String is the key in errors and logs.
func (k Key) String() string { return k.Partition + "/" + k.Row }

// Entity is one row. A property is a string, bool, int32, int64, float64, time.Time (UTC, 100 ns, year 1601 or later)
// or []byte; nil properties are not stored.
type Entity struct {
	Key
	// ETag is set by reads and opaque; Replace and Delete compare it. "" allows any version.
	ETag       string
	Properties map[string]any
}

// OpKind is the kind of an Op.
type OpKind int

// These are the kinds of Op. Insert, Replace, Upsert and Delete make them.
const (
	OpInsert  OpKind = iota + 1 // ErrExists when the key is taken
	OpReplace                   // ErrNotFound when missing; ErrPrecondition when Entity.ETag is set and differs
	OpUpsert                    // insert, or replace whatever exists; Entity.ETag is ignored
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
	// Where holds property equalities, all of which must hold; a missing property is not equal to anything. The
	// property has to have one type in all rows: what happens with values of other types is not defined. At most 12
	// equalities, of at most 512 UTF-16 units or bytes each.
	Where map[string]any
	// Select names the properties to return, 252 at most; empty: all.
	Select []string
	// Limit bounds the page, 1 to 1000; 0 means 1000.
	Limit int
	// Continuation is Page.Next of the page before; it is valid with the same query only.
	Continuation string
}

// Scan selects the entities of many partitions that have the same row key, in ascending partition order, for example a
// list of things that have one partition each. Its cost depends on what it passes and not on what it finds: the service
// reads past all the rows of the partitions in range, and ends a page where its time or a partition server ends. So a
// page may be short, even empty, and still have a Next. Bound the partitions where their keys allow it (PrefixEnd), and
// do not use it where it would run often.
type Scan struct {
	// Row is the row key that the entities have. AnyRow selects rows of any key in its place.
	Row    string
	AnyRow bool
	// FromPartition and ToPartition bound the partitions: FromPartition <= partition < ToPartition. Empty means no
	// bound.
	FromPartition, ToPartition string
	// Where holds property equalities, as in a Query. NotBefore holds properties that are times, and since when: an entity
	// with an earlier time, by the millisecond, or without the property, is left out. Both together have as many entries as a Query's Where.
	Where     map[string]any
	NotBefore map[string]time.Time
	// Select names the properties to return, 252 at most; empty: all.
	Select []string
	// Limit bounds the page, 1 to 1000; 0 means 1000.
	Limit int
	// Continuation is Page.Next of the page before; it is valid with the same scan only.
	Continuation string
}

// Page is one answer to a Query or a Scan. It may hold fewer entities than the limit, even none, and still have a Next.
type Page struct {
	Entities []Entity
	// Next continues the query or the scan; "" on the last page.
	Next string
}

// Store is Azure Table Storage as this program uses it. Implementations are safe for concurrent use. They neither keep
// nor share arguments and results: the caller may change both.
type Store interface {
	// CreateTable creates a table if it is missing.
	CreateTable(ctx context.Context, table string) error
	// Get reads one entity. The error may be ErrNotFound.
	Get(ctx context.Context, table string, key Key) (Entity, error)
	// Query reads one page.
	Query(ctx context.Context, table string, q Query) (Page, error)
	// Scan reads one page over many partitions. Changes between two pages may be seen or not; nothing is seen twice.
	Scan(ctx context.Context, table string, s Scan) (Page, error)
	// Apply applies all operations or none. One operation is a plain request; several are one entity group transaction
	// (one partition, at most 100 operations and 4 MiB, each row once). The error is an *OpError when one operation is
	// the cause.
	Apply(ctx context.Context, table string, ops ...Op) error
}
