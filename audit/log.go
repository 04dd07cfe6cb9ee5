package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/tables"
)

// DefaultTable is the table of a Log without a Table.
const DefaultTable = "audit"

var (
	// ErrNotRecorded means that the entry could not be written, so the change must not be made.
	ErrNotRecorded = errors.New("it could not be recorded who does this")
	// ErrToken means that the continuation is not one of this list.
	ErrToken = errors.New("not a continuation of this list")
)

// Log is the audit log. Tables is required; a Log is safe for concurrent use.
type Log struct {
	Tables tables.Store
	Table  string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (l *Log) table() string {
	if l.Table == "" {
		return DefaultTable
	}
	return l.Table
}

func (l *Log) now() time.Time {
	if l.Now == nil {
		return time.Now()
	}
	return l.Now()
}

// CreateTable creates the table if it is missing.
func (l *Log) CreateTable(ctx context.Context) error {
	if err := l.Tables.CreateTable(ctx, l.table()); err != nil {
		return fmt.Errorf("create the table %s: %w", l.table(), err)
	}
	return nil
}

// Begin records an intended change, and returns the entry as recorded. The error is ErrNotRecorded: then the change
// must not be made.
func (l *Log) Begin(ctx context.Context, e Entry) (Entry, error) {
	e = l.named(e).storable()
	return e, l.insert(ctx, e, e.rows(""))
}

// End records the outcome of an entry. A second End changes nothing and returns no error.
func (l *Log) End(ctx context.Context, e Entry, outcome Outcome, after string) error {
	e.Outcome, e.After, e.EndedAt = outcome, after, l.now()
	e = e.storable()
	return l.insert(ctx, e, e.rows(endMark))
}

// Record records a completed entry: a refusal, or an action of a program. An entry with the same id and time is
// recorded once.
func (l *Log) Record(ctx context.Context, e Entry) error {
	e = l.named(e)
	e.EndedAt = e.At
	e = e.storable()
	return l.insert(ctx, e, append(e.rows(""), e.rows(endMark)...))
}

// named sets the id and the time of an entry.
func (l *Log) named(e Entry) Entry {
	if e.ID == "" {
		e.ID = uuid.NewString()
	}
	if e.At.IsZero() {
		e.At = l.now()
	}
	return e
}

// endMark follows the key of an entry in the key of its end, so that the end is the next row.
const endMark = "~"

// rows returns the rows of an entry, or of its end, in all views.
func (e Entry) rows(mark string) []tables.Op {
	properties := e.properties()
	if mark == endMark {
		properties = e.ending()
	}
	var ops []tables.Op
	for _, prefix := range []string{viewAll, viewOf(viewTarget, e.Target), viewOf(viewPrincipal, e.Principal)} {
		if prefix != "" {
			ops = append(ops, tables.Insert(tables.Entity{Key: tables.Key{Partition: month(e.At), Row: prefix + placeOf(e.At) + "-" + e.ID + mark}, Properties: properties}))
		}
	}
	return ops
}

func (l *Log) insert(ctx context.Context, e Entry, ops []tables.Op) error {
	err := l.Tables.Apply(ctx, l.table(), ops...)
	if errors.Is(err, tables.ErrExists) { // by an earlier try whose answer was lost
		_, err = l.Tables.Get(ctx, l.table(), ops[0].Entity.Key)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s of %s: %w", ErrNotRecorded, e.Action, e.Target, err)
}

// The prefixes of the keys in each view.
const (
	viewAll       = "e-"
	viewTarget    = "t-"
	viewPrincipal = "p-"
)

// viewOf returns the prefix of the keys of all rows with a value, "" for no value. Values are compared without case, as
// ids of tenants are.
func viewOf(view, value string) string {
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.ToLower(value)))
	return view + hex.EncodeToString(sum[:16]) + "-"
}

// placeOf counts microseconds backwards, so that the newest entry is first.
func placeOf(at time.Time) string { return fmt.Sprintf("%019d", math.MaxInt64-at.UnixMicro()) }

const monthLayout = "2006-01"

func month(at time.Time) string { return at.UTC().Format(monthLayout) }
