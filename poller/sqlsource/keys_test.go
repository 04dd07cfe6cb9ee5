package sqlsource_test

import (
	"fmt"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// Two rows whose keys the database treats as equal have one position: a batch that ends between them would skip the
// second one.
func testSameByCollation(t *testing.T, d database) {
	db := d.open(t)
	collation := map[string]string{sqlsource.Postgres: "nocase", sqlsource.SQLite: "NOCASE", sqlsource.MySQL: "utf8mb4_general_ci"}[d.dialect]
	if d.dialect == sqlsource.Postgres {
		run(t, db, "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
	}
	run(t, db, fmt.Sprintf("CREATE TABLE orders (id int, name varchar(20) COLLATE %s, changed %s)", collation, d.timestamp),
		"INSERT INTO orders VALUES (1, 'a', '2026-04-07 01:23:45'), (2, 'b', '2026-04-07 01:23:45'), (3, 'B', '2026-04-07 01:23:45')")
	s := source(t, d.config(byTime, func(c *sqlsource.Config) { c.Keys = []string{"name"} }))
	testenv.Must(s.End(t.Context()))(t)
	b, err := s.Fetch(t.Context(), poller.Cursor{}, 1, 1<<20)
	if err != nil || len(b.Rows) != 1 {
		t.Fatalf("%d rows, %v", len(b.Rows), err)
	}
	_, err = s.Fetch(t.Context(), b.Rows[0].Cursor, 1, 1<<20)
	wants(t, err, sqlsource.ErrNotUnique, "orders", "2 rows")
}

// Truth values are valid keys.
func testBooleanKey(t *testing.T, d database) {
	d.orders(t, 4)
	run(t, d.open(t), "UPDATE orders SET open = id > 2, changed = '2026-04-07 01:23:45'")
	s := source(t, d.config(byTime, func(c *sqlsource.Config) { c.Keys = []string{"open", "id"} }))
	testenv.Equal(t, "rows", upTo(4), keys(t, drain(t, s, poller.Cursor{}, 1)))
}

// Rows without a cursor do not count for the uniqueness of a key that is the cursor.
func testNullAsKey(t *testing.T, d database) {
	d.orders(t, 3)
	run(t, d.open(t), "ALTER TABLE orders ADD COLUMN version "+d.integer, "UPDATE orders SET version = 1 WHERE id = 1")
	if _, err := source(t, d.config(func(c *sqlsource.Config) { c.Cursor, c.Keys = "version", []string{"version"} })).Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// MariaDB's widest numbers are unchanged in a position.
func TestMySQLWideDecimals(t *testing.T) {
	t.Parallel()
	d := newMaria(t)
	run(t, d.open(t), "CREATE TABLE orders (id int PRIMARY KEY, wide decimal(65,0), fine decimal(65,38), changed timestamp(6))",
		`INSERT INTO orders VALUES (1, -1e60, 0.00000000000000000000000000000000000001, '2026-04-07 01:23:45'), (2, -1e50, 0.00000000000000000000000000000000000002, '2026-04-07 01:23:45'),
			(3, 1e50, 0.00000000000000000000000000000000000003, '2026-04-07 01:23:45'), (4, 1e60, 0.00000000000000000000000000000000000004, '2026-04-07 01:23:45')`)
	for _, key := range []string{"wide", "fine"} {
		s := source(t, d.config(byTime, func(c *sqlsource.Config) { c.Keys = []string{key, "id"} }))
		testenv.Equal(t, fmt.Sprintf("by %s", key), upTo(4), keys(t, drain(t, s, poller.Cursor{}, 1)))
	}
}

// Types that are ordered and compared differently are refused.
func TestMySQLKeysRefused(t *testing.T) {
	t.Parallel()
	d := newMaria(t)
	run(t, d.open(t), "CREATE TABLE orders (id int PRIMARY KEY, size enum('small', 'large'), colours set('red', 'green'))")
	for _, key := range []string{"size", "colours"} {
		_, err := source(t, d.config(func(c *sqlsource.Config) { c.Keys = []string{key} })).Check(t.Context())
		wants(t, err, sqlsource.ErrColumnType, "orders", key)
	}
}

// A key that JSON cannot hold would be a different one in the state.
func TestSQLiteKeyNotUTF8(t *testing.T) {
	t.Parallel()
	d := newSQLite(t)
	run(t, d.open(t), "CREATE TABLE orders (id integer, name text)", "INSERT INTO orders VALUES (1, CAST(X'61FF' AS text))")
	_, err := source(t, d.config(func(c *sqlsource.Config) { c.Keys = []string{"id", "name"} })).Fetch(t.Context(), poller.Cursor{}, 1, 1<<20)
	wants(t, err, sqlsource.ErrColumnType, "orders", "name", "UTF-8")
}

// A time in SQLite that cannot be restored from a position is refused, and the usual forms are accepted.
func TestSQLiteTimes(t *testing.T) {
	t.Parallel()
	for value, ok := range map[string]bool{"'2026-04-07T01:23:45.123Z'": true, "'2026-04-07 01:23:45.123456+00:00'": true, "'2026-04-07 01:23'": true, "'2026-04-07'": true,
		"1775524985": false, "2461137.5": false, "'yesterday'": false} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			d := newSQLite(t)
			d.orders(t, 0)
			run(t, d.open(t), "INSERT INTO orders (changed) VALUES ("+value+")")
			s := source(t, d.config(byTime))
			_, err := s.End(t.Context())
			if ok && err != nil {
				t.Error(err)
			} else if !ok {
				wants(t, err, sqlsource.ErrColumnType, "orders", "changed", "no time")
			}
		})
	}
}

// The time of a condition is that instant, in any zone; without a zone in the column, an offset is refused.
func TestConditionTimes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open  func(testing.TB) database
		local string
	}{"postgres": {newPostgres, "timestamp"}, "mariadb": {newMaria, "datetime(6)"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := test.open(t)
			d.timed(t, test.local)
			where := func(column, value string) sqlsource.Config {
				return d.config(byTime, func(c *sqlsource.Config) { c.Where = []sqlsource.Condition{{Column: column, Op: ">=", Value: value}} })
			}
			for column, value := range map[string]string{"changed": "2026-01-01T14:30:00+02:00", "wall": "2026-01-01T07:30:00"} {
				if rows := drain(t, source(t, where(column, value)), poller.Cursor{}, 100); len(rows) != 30 {
					t.Errorf("%s >= %s: %d rows, want 30", column, value, len(rows))
				}
			}
			_, err := source(t, where("wall", "2026-01-01T07:30:00-05:00")).Check(t.Context())
			wants(t, err, sqlsource.ErrColumnType, "orders", "wall", "no zone")
		})
	}
}
