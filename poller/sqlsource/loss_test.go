package sqlsource_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

var lossTransactions = flag.Int("loss.transactions", 160, "how many transactions each writer of TestLoss makes, before sampling")

const (
	lossWriters = 16
	longestHold = 2 * time.Second
)

// Writers hold transactions open and roll some back, while each kind of source, and naive readers next to them, keep
// reading. The sources neither lose nor repeat rows; the naive readers lose rows, which proves that the test detects
// losses.
func TestLoss(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) database{"postgres": newPostgres, "mariadb": newMaria} {
		t.Run(name, func(t *testing.T) {
			sample.Repeat(t)
			t.Parallel()
			d := open(t)
			d.settle = max(d.settle, 500*time.Millisecond)
			loss(t, d)
		})
	}
}

// follower keeps reading and records the rows.
type follower struct {
	name  string
	naive bool
	read  func(ctx context.Context) (ids []int64, more bool, err error)
	seen  map[int64]int
}

func (f *follower) once(ctx context.Context) (more bool, err error) {
	ids, more, err := f.read(ctx)
	for _, id := range ids {
		f.seen[id]++
	}
	return more, err
}

func loss(t *testing.T, d database) {
	db := d.open(t)
	xid := ""
	if d.dialect == sqlsource.Postgres {
		xid = ", xid xid8 NOT NULL DEFAULT pg_current_xact_id()"
	}
	run(t, db, fmt.Sprintf("CREATE TABLE orders (id %s, changed %s NOT NULL DEFAULT %s, note int%s)", d.serial, d.timestamp, lossClock(d), xid), lossFunction(d),
		"CREATE INDEX orders_changed ON orders (changed, id)")
	followers := []*follower{followSource(t, "settle by time", d.config(byTime)), followSource(t, "settle by number", d.config()),
		followNaively(d, db, "naive by time", "changed, id"), followNaively(d, db, "naive by number", "id")}
	if d.dialect == sqlsource.Postgres {
		run(t, db, "CREATE INDEX orders_xid ON orders (xid, id)")
		followers = append(followers, followSource(t, "xid", d.config(func(c *sqlsource.Config) { c.Cursor, c.Bound = "xid", sqlsource.BoundXID })))
	}
	committed := overtake(t, d, db, followers)
	seeds := sample.Seeds(t, *lossTransactions)
	committed = append(committed, writeAndFollow(t, followers, func(ctx context.Context, number uint64) ([]int64, error) {
		return write(ctx, d, db, number, seeds)
	})...)

	for _, f := range followers {
		lost, repeated := 0, 0
		for _, id := range committed {
			switch n := f.seen[id]; {
			case n == 0:
				lost++
			case n > 1:
				repeated++
			}
		}
		t.Logf("%s: of %d rows %d lost, %d repeated", f.name, len(committed), lost, repeated)
		switch {
		case f.naive && lost == 0:
			t.Errorf("%s lost nothing: the test does not bite", f.name)
		case !f.naive && (lost > 0 || repeated > 0 || len(f.seen) != len(committed)):
			t.Errorf("%s: of %d rows %d lost, %d repeated, %d seen", f.name, len(committed), lost, repeated, len(f.seen))
		}
	}
}

// lossClock is the clock that loses most: that of the transaction's start where it exists.
func lossClock(d database) string {
	if d.dialect == sqlsource.Postgres {
		return "now()"
	}
	return d.now
}

// lossFunction makes a stored function that runs for long before it writes.
func lossFunction(d database) string {
	if d.dialect == sqlsource.Postgres {
		return "CREATE FUNCTION slowly(seconds float8) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(seconds); RETURN 1; END'"
	}
	return "CREATE FUNCTION slowly(seconds DOUBLE) RETURNS INT NO SQL BEGIN DO SLEEP(seconds); RETURN 1; END"
}

// overtake makes a transaction commit after one that started later, with all readers in between: every naive one skips
// it.
func overtake(t *testing.T, d database, db *sql.DB, followers []*follower) []int64 {
	t.Helper()
	ctx := t.Context()
	early := testenv.Must(db.BeginTx(ctx, nil))(t)
	first := testenv.Must(insert(ctx, d, early))(t)
	second := testenv.Must(insert(ctx, d, db))(t)
	for _, f := range followers {
		if _, err := f.once(ctx); err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
	}
	testenv.OK(t, early.Commit())
	return []int64{first, second}
}

// writer writes under its own number and returns its commits.
type writer func(ctx context.Context, number uint64) ([]int64, error)

// writeAndFollow lets writers write while followers read. It returns the commits.
func writeAndFollow(t *testing.T, followers []*follower, write writer) (committed []int64) {
	t.Helper()
	ctx := testenv.Context(t)
	written := make(chan []int64, lossWriters)
	var writers, readers sync.WaitGroup
	for i := range lossWriters {
		writers.Go(func() {
			ids, err := write(ctx, uint64(i))
			if err != nil {
				t.Error(err)
			}
			written <- ids
		})
	}
	done := make(chan struct{})
	for _, f := range followers {
		readers.Go(func() {
			if err := f.follow(ctx, done); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		})
	}
	writers.Wait()
	close(written)
	close(done)
	for ids := range written {
		committed = append(committed, ids...)
	}
	readers.Wait()
	return committed
}

// follow reads until the writers are done and no rows are left.
func (f *follower) follow(ctx context.Context, done <-chan struct{}) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		ended := false
		select {
		case <-done:
			ended = true
		default:
		}
		more, err := f.once(ctx)
		if err != nil || ended && !more {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type queryRower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func insert(ctx context.Context, d database, q queryRower) (id int64, err error) {
	statement := "INSERT INTO orders DEFAULT VALUES RETURNING id"
	if d.dialect == sqlsource.MySQL {
		statement = "INSERT INTO orders () VALUES () RETURNING id"
	}
	return id, q.QueryRowContext(ctx, statement).Scan(&id)
}

// insertSlowly inserts a row by a statement that runs for longer than the settle window before it writes: its clock has
// been frozen since. MariaDB shows the transaction only from the write on.
func insertSlowly(ctx context.Context, d database, q queryRower, random *rand.Rand) (id int64, err error) {
	seconds := random.Float64() * (2*d.settle + time.Second).Seconds()
	statement := "INSERT INTO orders (note) SELECT slowly(%f) RETURNING id"
	if random.IntN(2) == 0 {
		statement = "INSERT INTO orders (note) VALUES (slowly(%f)) RETURNING id"
	}
	return id, q.QueryRowContext(ctx, fmt.Sprintf(statement, seconds)).Scan(&id)
}

// write runs a transaction of up to three rows for each seed and returns the commits.
func write(ctx context.Context, d database, db *sql.DB, writer uint64, seeds []int) (committed []int64, err error) {
	for _, seed := range seeds {
		ids, err := transaction(ctx, d, db, rand.New(rand.NewPCG(uint64(seed), writer)))
		if err != nil {
			return nil, err
		}
		committed = append(committed, ids...)
	}
	return committed, nil
}

func transaction(ctx context.Context, d database, db *sql.DB, random *rand.Rand) (ids []int64, err error) {
	if random.IntN(40) == 0 {
		return prepared(ctx, d, db, random)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	for range 1 + random.IntN(3) {
		// Before the row, too: a transaction that has not written yet has its time already.
		if err := hold(ctx, d, tx, random); err != nil {
			return nil, err
		}
		var id int64
		if random.IntN(20) == 0 {
			id, err = insertSlowly(ctx, d, tx, random)
		} else {
			id, err = insert(ctx, d, tx)
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if err := hold(ctx, d, tx, random); err != nil {
		return nil, err
	}
	if random.IntN(5) == 0 {
		return nil, tx.Rollback()
	}
	return ids, tx.Commit()
}

// prepared inserts a row in a two-phase transaction, which outlives its connection between the phases.
func prepared(ctx context.Context, d database, db *sql.DB, random *rand.Rand) (ids []int64, err error) {
	name := "'" + strings.ReplaceAll(uuid.NewString(), "-", "") + "'"
	begin, prepare, commit := []string{"BEGIN"}, []string{"PREPARE TRANSACTION " + name}, "COMMIT PREPARED "+name
	if d.dialect == sqlsource.MySQL {
		begin, prepare, commit = []string{"XA START " + name}, []string{"XA END " + name, "XA PREPARE " + name}, "XA COMMIT "+name
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := execute(ctx, conn, begin...); err != nil {
		return nil, err
	}
	id, err := insertSlowly(ctx, d, conn, random)
	if err != nil {
		return nil, err
	}
	if err := execute(ctx, conn, prepare...); err != nil {
		return nil, err
	}
	var committer execer = conn
	if random.IntN(2) == 0 { // the connection is gone, and another one commits
		committer = db
		if err := conn.Raw(func(any) error { return driver.ErrBadConn }); !errors.Is(err, driver.ErrBadConn) {
			return nil, err
		}
	}
	if err := hold(ctx, d, db, random); err != nil {
		return nil, err
	}
	var unknown *mysql.MySQLError
	for err = execute(ctx, committer, commit); errors.As(err, &unknown) && unknown.Number == xaUnknown; err = execute(ctx, committer, commit) {
		if err := execute(ctx, db, "DO SLEEP(0.01)"); err != nil {
			return nil, err
		}
	}
	return []int64{id}, err
}

// xaUnknown is MariaDB's error while the connection that prepared a transaction still exists.
const xaUnknown = 1397

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func execute(ctx context.Context, e execer, statements ...string) error {
	for _, statement := range statements {
		if _, err := e.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// hold keeps the transaction open: mostly shortly, sometimes long.
func hold(ctx context.Context, d database, tx execer, random *rand.Rand) error {
	longest := 20 * time.Millisecond
	if random.IntN(30) == 0 {
		longest = longestHold
	}
	function := "pg_sleep"
	if d.dialect == sqlsource.MySQL {
		function = "SLEEP"
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf("SELECT %s(%f)", function, random.Float64()*longest.Seconds()))
	return err
}

func followSource(t *testing.T, name string, c sqlsource.Config) *follower {
	t.Helper()
	s := source(t, c)
	testenv.Must(s.Check(t.Context()))(t)
	return follow(t, name, s)
}

func follow(t *testing.T, name string, s *sqlsource.Source) *follower {
	t.Helper()
	var after poller.Cursor
	return &follower{name: name, seen: map[int64]int{}, read: func(ctx context.Context) ([]int64, bool, error) {
		b, err := s.Fetch(ctx, after, 100, 1<<20)
		if err != nil {
			return nil, false, err
		}
		if len(b.Rows) > 0 {
			after = b.Rows[len(b.Rows)-1].Cursor
		}
		var ids []int64
		for _, id := range keys(t, b.Rows) {
			ids = append(ids, int64(id))
		}
		return ids, b.More || b.HeldBack != "" || len(b.Rows) > 0, nil
	}}
}

// followNaively reads after the last row that it has seen, without any bound.
func followNaively(d database, db *sql.DB, name, order string) *follower {
	id, changed := int64(0), "1970-01-02 00:00:00"
	condition := func() string { return fmt.Sprintf("id > %d", id) }
	if order != "id" {
		condition = func() string { return fmt.Sprintf("(changed, id) > ('%s', %d)", changed, id) }
	}
	text := "changed::text"
	if d.dialect == sqlsource.MySQL {
		text = "CAST(changed AS CHAR)"
	}
	return &follower{name: name, naive: true, seen: map[int64]int{}, read: func(ctx context.Context) (ids []int64, more bool, err error) {
		rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT id, %s FROM orders WHERE %s ORDER BY %s LIMIT 100", text, condition(), order))
		if err != nil {
			return nil, false, err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(&id, &changed); err != nil {
				return nil, false, err
			}
			ids = append(ids, id)
		}
		return slices.Clip(ids), len(ids) > 0, rows.Err()
	}}
}
