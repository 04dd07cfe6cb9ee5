package sqlsource_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"

	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// writing is shared by the writers of a table.
type writing struct {
	*generated
	db *sql.DB
	// ids and versions are the last assigned ones.
	ids, versions         atomic.Int64
	committed, rolledBack atomic.Int64
	// moved is set when the reader has seen the bound move.
	moved atomic.Bool
}

// write runs random transactions, and more of them while the bound has not moved.
func (w *writing) write(ctx context.Context, random *rand.Rand) error {
	for n := 0; n < randomTransactions || n < mostTransactions && !w.moved.Load(); n++ {
		committed, err := w.transaction(ctx, random)
		if err != nil && !contended(err) {
			return err
		}
		if committed && err == nil {
			w.committed.Add(1)
		} else {
			w.rolledBack.Add(1)
		}
		if err := w.sleep(ctx, w.db, random, 30*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// contended reports whether a transaction lost against another one, or made a duplicate key.
func contended(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	var lite *sqlite.Error
	switch {
	case errors.As(err, &pg):
		return pg.Code == "23505" || pg.Code == "40P01" || pg.Code == "40001"
	case errors.As(err, &my):
		return my.Number == 1062 || my.Number == 1213 || my.Number == 1205 || my.Number == 1020 || my.Number == 1467
	case errors.As(err, &lite):
		return lite.Code()&0xff == 19 || lite.Code()&0xff == 5
	}
	return false
}

func (w *writing) transaction(ctx context.Context, random *rand.Rand) (committed bool, err error) {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if w.cursor.session != "" {
		if err := execute(ctx, conn, w.cursor.session); err != nil {
			return false, err
		}
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	for i := range 1 + random.IntN(4) {
		if err := w.sleep(ctx, tx, random, w.longest(random)); err != nil {
			return false, err
		}
		if random.IntN(4) > 0 {
			if err := execute(ctx, tx, w.statements(random)...); err != nil {
				return false, err
			}
			continue
		}
		savepoint := fmt.Sprintf("s%d", i)
		statements := append([]string{"SAVEPOINT " + savepoint}, w.statements(random)...)
		if err := execute(ctx, tx, append(statements, pick(random, []string{"RELEASE SAVEPOINT ", "ROLLBACK TO SAVEPOINT "})+savepoint)...); err != nil {
			return false, err
		}
	}
	if err := w.sleep(ctx, tx, random, w.longest(random)); err != nil {
		return false, err
	}
	if random.IntN(5) == 0 {
		return false, tx.Rollback()
	}
	return true, tx.Commit()
}

// longest returns the wait of a transaction: mostly short, rarely longer than the settle window.
func (w *writing) longest(random *rand.Rand) time.Duration {
	switch {
	case w.d.dialect == sqlsource.SQLite:
		return 0 // other writers are blocked meanwhile
	case random.IntN(20) == 0:
		return max(500*time.Millisecond, w.d.settle/2)
	}
	return 20 * time.Millisecond
}

func (w *writing) sleep(ctx context.Context, on execer, random *rand.Rand, longest time.Duration) error {
	function := map[string]string{sqlsource.Postgres: "pg_sleep", sqlsource.MySQL: "SLEEP"}[w.d.dialect]
	if longest == 0 || function == "" {
		return nil
	}
	return execute(ctx, on, fmt.Sprintf("SELECT %s(%f)", function, random.Float64()*longest.Seconds()))
}

// statements returns a writing statement, and its prerequisites.
func (w *writing) statements(random *rand.Rand) []string {
	var statements []string
	if w.cursor.before != "" {
		statements = append(statements, w.cursor.before)
	}
	switch n := random.IntN(20); {
	case n < 7:
		statements = append(statements, w.insert(random, 1))
	case n < 9:
		statements = append(statements, w.insert(random, 2+random.IntN(6)))
	case n < 10:
		statements = append(statements, w.insertSlowly(random))
	case n < 12:
		statements = append(statements, "DELETE FROM things WHERE "+w.some(random))
	case w.cursor.insertOnly:
		statements = append(statements, w.insert(random, 1))
	default:
		statements = append(statements, w.update(random))
	}
	return statements
}

// value returns a cursor value: mostly the next one.
func (w *writing) value(random *rand.Rand) string {
	if random.IntN(8) == 0 && !w.cursor.insertOnly && w.cursor.name != "identity" {
		return "NULL"
	}
	return pick(random, w.cursor.next)
}

func (w *writing) row(random *rand.Rand, cursor string) string {
	values := []string{cursor}
	for _, k := range w.keys {
		values = append(values, k.value(random))
	}
	note := "NULL"
	if random.IntN(6) == 0 {
		note = "'" + strings.Repeat("x", random.IntN(3000)) + "'"
	}
	values = append(values, fmt.Sprint(w.ids.Add(1)), fmt.Sprint(w.versions.Add(1)), w.state(random), pick(random, []string{"false", "false", "true"}), note)
	return strings.Join(values, ", ")
}

func (w *writing) state(random *rand.Rand) string {
	return w.d.literal(pick(random, []string{"a", "b'\\", "c ", "C"}))
}

func (w *writing) into() string {
	return "INSERT INTO things (cur, " + strings.Join(w.names(), ", ") + ", id, version, state, gone, note) "
}

func (w *writing) insert(random *rand.Rand, rows int) string {
	cursor := w.value(random)
	var all []string
	for range rows {
		all = append(all, "("+w.row(random, cursor)+")")
	}
	return w.into() + "VALUES " + strings.Join(all, ", ")
}

// insertSlowly runs for long before it writes.
func (w *writing) insertSlowly(random *rand.Rand) string {
	if w.d.dialect == sqlsource.SQLite {
		return w.insert(random, 1)
	}
	cursor := pick(random, w.cursor.next)
	return w.into() + "SELECT " + w.row(random, cursor) + fmt.Sprintf(" WHERE slowly(%f) = 1", random.Float64()*w.longest(random).Seconds())
}

// some returns a condition for a few rows.
func (w *writing) some(random *rand.Rand) string {
	last := max(w.ids.Load(), 1)
	if random.IntN(4) == 0 {
		return fmt.Sprintf("id %% 17 = %d", random.IntN(17))
	}
	return fmt.Sprintf("id IN (%d, %d)", 1+random.Int64N(last), 1+random.Int64N(last))
}

// update moves the cursors of some rows: with a change of state, a mark of deletion, a new key, or of those without
// one.
func (w *writing) update(random *rand.Rand) string {
	set := fmt.Sprintf("UPDATE things SET cur = %s, version = %d", pick(random, w.cursor.next), w.versions.Add(1))
	switch random.IntN(5) {
	case 0:
		return set + ", gone = true WHERE " + w.some(random)
	case 1:
		i := random.IntN(len(w.keys))
		return set + fmt.Sprintf(", %s = %s WHERE id = %d", w.names()[i], w.keys[i].value(random), 1+random.Int64N(max(w.ids.Load(), 1)))
	case 2:
		return set + " WHERE cur IS NULL"
	}
	return set + ", state = " + w.state(random) + " WHERE " + w.some(random)
}
