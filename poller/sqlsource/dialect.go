package sqlsource

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// dialect is what is different between databases.
type dialect struct {
	// bounds are those it has, the usual one first.
	bounds []string
	// minSettle is the shortest settle window that keeps its promise.
	minSettle time.Duration
	// connect makes connections out of a connection string, and says which parts of it are secret. setup is run on each.
	connect func(dsn string, timeout time.Duration) (c driver.Connector, secrets []string, err error)
	setup   []string
	// address is where the database of a connection string is, see Config.address. databaseID is the id that the database has for
	// itself; nil where it has none.
	address    func(dsn string) string
	databaseID func(ctx context.Context, q querier) (string, error)
	// quotes are put around an identifier; the second one is doubled inside.
	quotes      [2]string
	placeholder func(n int) string
	// rowValues says that (a, b) > (c, d) is understood and finds an index.
	rowValues bool
	// top says that the number of rows stands before the columns.
	top bool
	// backslash says that a backslash escapes in strings.
	backslash bool
	// class of a driver's type name; other is the one of names that are not listed.
	classes map[string]class
	other   class
	// refine finds what the driver's names of types do not tell; nil when they do.
	refine func(ctx context.Context, s *Source, sh *shape) error
	// expression selects a column, so that nothing of its value is lost on the way.
	expression func(quoted string, c column) string
	// bind is what stands in a comparison with a column for the placeholder of a text, argument the value that goes with it.
	bind     func(placeholder, text string, c column) string
	argument func(text string, c column) any
	// ceiling is the expression that a cursor of the classes xid and rowversion must be below; NULL where nobody can tell, on a replica.
	ceiling string
	// look says when the oldest transaction that may write began.
	look func(ctx context.Context, s *Source) (sighting, error)
	// sequence says why the values of an integer cursor do not grow with time.
	sequence func(ctx context.Context, s *Source, cursor column) error
	// unique says whether an index keeps the keys unique.
	unique func(ctx context.Context, s *Source) (bool, error)
	// scans says that a fetch reads the whole table or sorts it.
	scans func(ctx context.Context, s *Source, text string, args []any) (bool, error)
	// notNull are the table's columns that are never NULL, where the driver does not say.
	notNull func(ctx context.Context, s *Source) (map[string]bool, error)
	// advise says what else may be wrong with the cursor.
	advise func(ctx context.Context, s *Source, cursor column) (string, error)
	// frontier is the highest value that the cursor can have by now, "" when that cannot be told.
	frontier func(ctx context.Context, s *Source, cursor column) (string, error)
	// catalog is what the database says of the table, and remedies are the statements that change it.
	catalog  func(ctx context.Context, s *Source) (catalog, error)
	remedies remedies
	// plan is what the database says of how it would run a statement, estimate how many rows the table has by its statistics, -1 when it
	// has none. plan is nil where it needs what a read-only session does not have.
	plan     func(ctx context.Context, s *Source, text string, args []any) ([]string, error)
	estimate func(ctx context.Context, s *Source) (int64, error)
	// holder names the transaction that holds the ceiling back, "" when it is not seen; nil where nobody can tell.
	holder func(ctx context.Context, s *Source) (string, error)
	// explain finds what the database complains about, and what to do.
	explain func(err error) (hint string, kind error)
}

// sighting is a look at the transactions.
type sighting struct {
	// now is the database's clock, oldest the start of the oldest transaction that may write, zero without one.
	now, oldest time.Time
	// holder says which one that is; unknown that its start cannot be told.
	holder  string
	unknown bool
}

func dialects() map[string]*dialect {
	return map[string]*dialect{Postgres: postgresDialect(), SQLite: sqliteDialect(), MySQL: mysqlDialect(), SQLServer: sqlserverDialect()}
}

// quote makes an identifier of a name.
func (d *dialect) quote(name string) string {
	return d.quotes[0] + strings.ReplaceAll(name, d.quotes[1], d.quotes[1]+d.quotes[1]) + d.quotes[1]
}

// class is how a column's values are written as text and JSON.
type class int

const (
	classOther class = iota // text, but neither cursor nor key
	classText
	classInteger
	classDecimal
	classFloat
	classBoolean
	classTime  // with a time zone
	classLocal // date, or date and time, without one
	classBytes
	classJSON
	classXID
	classRowVersion
)

// column is one of the object's.
type column struct {
	name, typ string
	class     class
	nullable  bool
	// step is what times of the column are rounded to, if that is coarser than a microsecond.
	step time.Duration
}

// querier runs statements: a pool, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// first gives the first row of a statement as text, and whether there was one; NULL is not valid.
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

// Connect makes a connection that is set up.
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
