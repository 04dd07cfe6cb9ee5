package sqlsource

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones on any machine

	"github.com/vibedata/roundhouse/poller"
)

// The dialects.
const (
	Postgres  = "postgres"
	SQLite    = "sqlite"
	MySQL     = "mysql" // also MariaDB
	SQLServer = "sqlserver"
)

// The bounds: how a source avoids skipping rows of running transactions.
const (
	// BoundXID returns rows of transactions below the oldest running one. The cursor is an xid8 column of PostgreSQL.
	BoundXID = "xid"
	// BoundRowVersion returns rows below the oldest row version in use. The cursor is a rowversion column of SQL Server.
	BoundRowVersion = "rowversion"
	// BoundSettle returns rows that are older than the settle window before the start of the oldest running transaction.
	BoundSettle = "settle"
	// BoundSingleWriter returns all rows: SQLite lets only one transaction write at a time.
	BoundSingleWriter = "single-writer"
)

const (
	defaultSettle  = 5 * time.Second
	defaultTimeout = 30 * time.Second
)

// Config selects the rows, the database and the user. Dialect, SourceID, Cursor, Keys, one of Table and Query, and one
// of DSN and DB are required.
type Config struct {
	Dialect string `json:"dialect"`
	// DSN is the connection string in the driver's form. It is never part of an error.
	DSN string `json:"-"`
	// DB is used instead of DSN, and not closed by Close. Its sessions must be in UTC; its owner sets limits and read-only
	// sessions.
	DB *sql.DB `json:"-"`
	// SourceID names the database for operators and for the fingerprint, which also has its address and id.
	SourceID string `json:"sourceId"`
	// Table is [schema.]table.
	Table string `json:"table,omitempty"`
	// Query is read instead of a table: one SELECT without ORDER BY, with the columns that are named below. ":name" in it
	// is a parameter.
	Query  string         `json:"query,omitempty"`
	Params map[string]any `json:"parameters,omitempty"`
	// Where are conditions that all must hold.
	Where []Condition `json:"where,omitempty"`
	// Cursor is the column whose values grow with each change, Keys those that identify a row.
	Cursor string   `json:"cursor"`
	Keys   []string `json:"keys"`
	// Deleted is a column that marks deleted rows, by its type: a truth value, a number that is not 0, a past time, or a
	// text that is neither empty nor a word for no. docs/pollers.md has the table.
	Deleted string `json:"deleted,omitempty"`
	// Bound is one of the Bound constants; "" means single-writer for SQLite, rowversion for SQL Server and settle
	// otherwise.
	Bound string `json:"bound,omitempty"`
	// Settle is the settle window; 0 means 5 s, and MySQL needs 2 s or more. It covers the time between the reading of a
	// cursor's value and the transaction's start, and clock differences if the value is not the database's.
	Settle time.Duration `json:"settle,omitempty"`
	// CursorZone is the time zone of a cursor column without one; "" means UTC.
	CursorZone string `json:"cursorZone,omitempty"`
	// Readers are database users that never write: their transactions hold no rows back (PostgreSQL, MySQL).
	Readers []string `json:"readers,omitempty"`
	// ExpectDeletes means that rows are deleted from the table or leave the query. Without it, a position after the last
	// row of the table is an error unless the table itself generates the numbers of the cursor.
	ExpectDeletes bool `json:"expectDeletes,omitempty"`
	// Timeout bounds a statement; 0 means 30 s.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Condition is one that a row has to meet.
type Condition struct {
	Column string `json:"column"`
	// Op is =, <>, <, <=, >, >=, in, like, is null or is not null.
	Op string `json:"op"`
	// Value is the operand, except for is null and is not null; a list for in.
	Value any `json:"value,omitempty"`
}

// Validate returns all errors, without querying the database.
func (c Config) Validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	d, known := dialects()[c.Dialect]
	wrong(!known, "dialect %q: want postgres, sqlite, mysql or sqlserver", c.Dialect)
	wrong((c.DSN == "") == (c.DB == nil), "one of DSN and DB is needed")
	wrong(c.SourceID == "", "sourceId is needed: a name for the database that stays when its host changes")
	wrong((c.Table == "") == (c.Query == ""), "one of table and query is needed")
	wrong(c.Query == "" && len(c.Params) > 0, "parameters are for a query: a table has where")
	wrong(c.Table != "" && len(tableParts(c.Table)) == 0, "table %q: want table or schema.table", c.Table)
	wrong(c.Cursor == "", "cursor is needed: a column that grows with each change")
	wrong(len(c.Keys) == 0, "keys are needed: the columns that name a row")
	for i, k := range c.Keys {
		wrong(k == "", "keys: a name is empty")
		wrong(slices.Contains(c.Keys[:i], k), "keys: %q is named twice", k)
	}
	for _, w := range c.Where {
		errs = append(errs, w.validate())
	}
	wrong(c.Settle < 0, "settle %v: must not be negative", c.Settle)
	if known {
		wrong(c.Bound != "" && !slices.Contains(d.bounds, c.Bound), "bound %q: %s has %s", c.Bound, c.Dialect, strings.Join(d.bounds, ", "))
		wrong(c.Settle > 0 && c.Settle < d.minSettle, "settle %v: %s needs %v or more", c.Settle, c.Dialect, d.minSettle)
	}
	wrong(c.Timeout < 0, "timeout %v: must not be negative", c.Timeout)
	if _, err := time.LoadLocation(c.CursorZone); err != nil || c.CursorZone == "Local" {
		errs = append(errs, fmt.Errorf("cursorZone %q: not a known time zone: use a name such as Europe/Berlin, or UTC", c.CursorZone))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("source %s: %w", c.object(), err)
	}
	return nil
}

func (w Condition) validate() error {
	op := strings.ToLower(w.Op)
	list, isList := w.Value.([]any)
	switch {
	case w.Column == "":
		return errors.New("where: a column is needed")
	case !slices.Contains([]string{"=", "<>", "<", "<=", ">", ">=", "in", "like", "is null", "is not null"}, op):
		return fmt.Errorf("where %s: operator %q is not known", w.Column, w.Op)
	case op == "in" && (!isList || len(list) == 0):
		return fmt.Errorf("where %s in: want a list of values", w.Column)
	case op != "in" && isList:
		return fmt.Errorf("where %s %s: one value is wanted, not a list", w.Column, w.Op)
	case strings.HasPrefix(op, "is ") != (w.Value == nil):
		return fmt.Errorf("where %s %s: a value is for all operators but is null and is not null", w.Column, w.Op)
	}
	return nil
}

// object returns the name of the table or query for messages.
func (c Config) object() string {
	if c.Table != "" {
		return c.Table
	}
	return "query"
}

// withDefaults sets the defaults of missing values.
func (c Config) withDefaults() Config {
	if c.Bound == "" {
		c.Bound = dialects()[c.Dialect].bounds[0]
	}
	if c.Settle == 0 {
		c.Settle = defaultSettle
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return c
}

// Definition returns the part of the configuration that determines the rows and their order, with the default bound if
// none is given.
func (c Config) Definition() poller.Definition {
	if known, ok := dialects()[c.Dialect]; ok && c.Bound == "" {
		c.Bound = known.bounds[0]
	}
	d := poller.Definition{Database: c.address(), Dialect: c.Dialect, SourceID: c.SourceID, Object: c.Table, Cursor: c.Cursor,
		Keys: slices.Clone(c.Keys), Deleted: c.Deleted, Bound: c.Bound, Params: map[string]any{}}
	if c.Query != "" {
		d.Object = c.Query
	}
	if c.CursorZone != "UTC" {
		d.Zone = c.CursorZone
	}
	for name, value := range c.Params {
		d.Params[name] = value
	}
	var filter []string
	for i, w := range c.Where {
		op := strings.ToLower(w.Op)
		if w.Value == nil {
			filter = append(filter, w.Column+" "+op)
			continue
		}
		name := fmt.Sprintf("where%d", i+1)
		filter = append(filter, w.Column+" "+op+" :"+name)
		d.Params[name] = w.Value
	}
	d.Filter = strings.Join(filter, " and ")
	return d
}

// tableParts splits [schema.]table; it returns nil for other texts.
func tableParts(table string) []string {
	parts := strings.Split(table, ".")
	if len(parts) > 2 || slices.Contains(parts, "") {
		return nil
	}
	return parts
}
