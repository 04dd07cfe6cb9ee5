package sqlsource

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// dialect has the differences between databases.
type dialect struct {
	// bounds are the supported ones, the default first.
	bounds []string
	// minSettle is the shortest safe settle window.
	minSettle time.Duration
	// connect makes connections from a connection string, and returns its secret parts. setup is run on each connection.
	connect func(dsn string, timeout time.Duration) (c driver.Connector, secrets []string, err error)
	setup   []string
	// address returns the address of a connection string's database, see Config.address. databaseID returns the database's
	// own id; nil where it has none.
	address    func(dsn string) string
	databaseID func(ctx context.Context, q querier) (string, error)
	// quotes enclose an identifier; the second one is doubled inside.
	quotes      [2]string
	placeholder func(n int) string
	// rowValues means that (a, b) > (c, d) is supported and uses an index.
	rowValues bool
	// top means that the number of rows precedes the columns.
	top bool
	// backslash means that a backslash escapes in strings.
	backslash bool
	// classes has the class of a driver's type name; other is that of other names.
	classes map[string]class
	other   class
	// refine completes the types that the driver's names leave open; nil when they leave none.
	refine func(ctx context.Context, s *Source, sh *shape) error
	// expression selects a column without loss of its value.
	expression func(quoted string, c column) string
	// bind is the expression for the placeholder of a text that is compared with a column, argument the value for it.
	bind     func(placeholder, text string, c column) string
	argument func(text string, c column) any
	// ceiling is the expression of the upper bound of a cursor of the classes xid and rowversion; NULL where it is
	// unknown, on a replica.
	ceiling string
	// look returns the start of the oldest transaction that may write.
	look func(ctx context.Context, s *Source) (sighting, error)
	// sequence returns the reason why the values of an integer cursor do not grow with time.
	sequence func(ctx context.Context, s *Source, cursor column) error
	// unique reports whether an index makes the keys unique.
	unique func(ctx context.Context, s *Source) (bool, error)
	// scans reports whether a fetch reads the whole table or sorts it.
	scans func(ctx context.Context, s *Source, text string, args []any) (bool, error)
	// notNull returns the table's columns that are never NULL, if the driver does not report them.
	notNull func(ctx context.Context, s *Source) (map[string]bool, error)
	// advise returns other problems of the cursor.
	advise func(ctx context.Context, s *Source, cursor column) (string, error)
	// frontier returns the highest possible current value of the cursor, "" when unknown.
	frontier func(ctx context.Context, s *Source, cursor column) (string, error)
	// catalog reads the database's description of the table, and remedies are the statements that change it.
	catalog  func(ctx context.Context, s *Source) (catalog, error)
	remedies remedies
	// plan returns the database's plan of a statement, estimate the number of the table's rows by its statistics, -1
	// without any. plan is nil where it needs rights that a read-only session does not have.
	plan     func(ctx context.Context, s *Source, text string, args []any) ([]string, error)
	estimate func(ctx context.Context, s *Source) (int64, error)
	// holder returns the transaction that holds the ceiling back, "" when it is invisible; nil where it is unknown.
	holder func(ctx context.Context, s *Source) (string, error)
	// explain translates an error of the database, and returns the remedy.
	explain func(err error) (hint string, kind error)
}

// sighting is a look at the transactions.
type sighting struct {
	// now is the database's clock, oldest the start of the oldest transaction that may write, zero without one.
	now, oldest time.Time
	// holder names that transaction; unknown means that its start cannot be determined.
	holder  string
	unknown bool
}

func dialects() map[string]*dialect {
	return map[string]*dialect{Postgres: postgresDialect(), SQLite: sqliteDialect(), MySQL: mysqlDialect(), SQLServer: sqlserverDialect()}
}

// quote quotes a name as an identifier.
func (d *dialect) quote(name string) string {
	return d.quotes[0] + strings.ReplaceAll(name, d.quotes[1], d.quotes[1]+d.quotes[1]) + d.quotes[1]
}

// class determines how a column's values are written as text and JSON.
type class int

const (
	classOther class = iota // text, but neither cursor nor key
	classText
	classInteger
	classDecimal
	classFloat
	classBoolean
	classTime  // with a time zone
	classLocal // date, or date and time, without a time zone
	classBytes
	classJSON
	classXID
	classRowVersion
)

// column is a column of the object.
type column struct {
	name, typ string
	class     class
	nullable  bool
	// step is the rounding of the column's times, if that is coarser than a microsecond.
	step time.Duration
}

// querier runs statements: a pool, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// first returns the first row of a statement as text, and whether it exists; NULL is not valid.
func first(ctx context.Context, q querier, statement string, args ...any) (values []sql.NullString, found bool, err error) {
	rows, err := q.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, false, rows.Err()
	}
	names, err := rows.Columns()
	if err != nil {
		return nil, false, err
	}
	values = make([]sql.NullString, len(names))
	targets := make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := rows.Scan(targets...); err != nil {
		return nil, false, err
	}
	return values, true, rows.Close()
}

// connector runs the dialect's setup on each new connection.
type connector struct {
	driver.Connector
	setup []string
}

// Connect makes a connection and runs the setup on it.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	execer, ok := conn.(driver.ExecerContext)
	if !ok && len(c.setup) > 0 {
		_ = conn.Close()
		return nil, fmt.Errorf("connections of type %T cannot be set up", conn)
	}
	for _, statement := range c.setup {
		if _, err := execer.ExecContext(ctx, statement, nil); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	return conn, nil
}
