package sqlsource_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

func (d database) config(change ...func(*sqlsource.Config)) sqlsource.Config {
	c := sqlsource.Config{Dialect: d.dialect, DSN: d.dsn, SourceID: "test", Table: "orders", Cursor: "id", Keys: []string{"id"},
		Settle: d.settle}
	for _, f := range change {
		f(&c)
	}
	return c
}

// byTime reads in the order of changes.
func byTime(c *sqlsource.Config) { c.Cursor, c.Bound = "changed", sqlsource.BoundSettle }

func source(t testing.TB, c sqlsource.Config) *sqlsource.Source {
	t.Helper()
	s := testenv.Must(sqlsource.Open(c))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// orders makes the table with rows from 1 to n.
func (d database) orders(t testing.TB, n int) {
	t.Helper()
	db := d.open(t)
	run(t, db, fmt.Sprintf("CREATE TABLE orders (id %s, state varchar(20), amount %s, open %s, raw %s, changed %s)",
		d.serial, d.decimal, d.boolean, d.bytes, d.timestamp), "CREATE INDEX orders_changed ON orders (changed, id)")
	for i := range n {
		run(t, db, fmt.Sprintf("INSERT INTO orders (state, amount, open, changed) VALUES ('state%d', '0.100000000000000001', true, %s)", i%2, d.now))
	}
}

// drain reads until the source has no more rows and holds none back.
func drain(t testing.TB, s *sqlsource.Source, after poller.Cursor, limit int) (rows []poller.Row) {
	t.Helper()
	testenv.Until(t, "the rows that are held back", func() bool {
		for {
			b := testenv.Must(s.Fetch(t.Context(), after, limit, 1<<20))(t)
			if len(b.Rows) == 0 {
				return b.HeldBack == ""
			}
			rows = append(rows, b.Rows...)
			after = b.Rows[len(b.Rows)-1].Cursor
		}
	})
	return rows
}

func keys(t testing.TB, rows []poller.Row) (ids []int) {
	t.Helper()
	for _, r := range rows {
		var key struct{ ID int }
		testenv.OK(t, json.Unmarshal(r.Key, &key))
		ids = append(ids, key.ID)
	}
	return ids
}

func upTo(n int) (ids []int) {
	for i := range n {
		ids = append(ids, i+1)
	}
	return ids
}

// suite returns the tests of every dialect.
func suite() map[string]func(*testing.T, database) {
	return map[string]func(*testing.T, database){
		"in order":          testInOrder,
		"ties":              testTies,
		"new rows":          testNewRows,
		"precision":         testPrecision,
		"filter":            testFilter,
		"query":             testQuery,
		"soft delete":       testSoftDelete,
		"large row":         testLargeRow,
		"end":               testEnd,
		"null cursor":       testNullCursor,
		"null key":          testNullKey,
		"not unique":        testNotUnique,
		"not unique, later": testNotUniqueLater,
		"same by collation": testSameByCollation,
		"boolean key":       testBooleanKey,
		"null as a key":     testNullAsKey,
		"missing column":    testMissingColumn,
		"missing table":     testMissingTable,
		"changed type":      testChangedType,
		"dropped table":     testDroppedTable,
		"advice":            testAdvice,
		"went back":         testWentBack,
		"odd names":         testOddNames,
		"read only":         testReadOnly,
		"bad cursor":        testBadCursor,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for name, test := range suite() {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, open(t))
				})
			}
		})
	}
}

func testInOrder(t *testing.T, d database) {
	d.orders(t, 25)
	for _, c := range []sqlsource.Config{d.config(), d.config(byTime)} {
		s := source(t, c)
		testenv.Must(s.Check(t.Context()))(t)
		testenv.Equal(t, fmt.Sprintf("cursor %s", c.Cursor), upTo(25), keys(t, drain(t, s, poller.Cursor{}, 10)))
	}
}

// The keys order rows of the same time, and a position without a key is after all of them.
func testTies(t *testing.T, d database) {
	d.orders(t, 9)
	run(t, d.open(t), "UPDATE orders SET changed = '2026-04-07 01:23:45.123456'")
	s := source(t, d.config(byTime))
	rows := drain(t, s, poller.Cursor{}, 2)
	testenv.Equal(t, "rows", upTo(9), keys(t, rows))
	want := poller.Cursor{Kind: "timestamp+pk", Value: "2026-04-07T01:23:45.123456Z", Tiebreaker: json.RawMessage(`{"id":9}`)}
	if d.dialect == sqlsource.SQLite {
		want.Value = "2026-04-07 01:23:45.123456"
	}
	testenv.Equal(t, "cursor", want, rows[8].Cursor)
	if got := drain(t, s, poller.Cursor{Kind: want.Kind, Value: want.Value}, 2); len(got) > 0 {
		t.Errorf("%d rows behind a place without a key", len(got))
	}
}

func testNewRows(t *testing.T, d database) {
	d.orders(t, 3)
	s := source(t, d.config())
	rows := drain(t, s, poller.Cursor{}, 10)
	run(t, d.open(t), "INSERT INTO orders (state) VALUES ('new')")
	testenv.Equal(t, "new rows", []int{4}, keys(t, drain(t, s, rows[2].Cursor, 10)))
}

func testPrecision(t *testing.T, d database) {
	d.orders(t, 0)
	db := d.open(t)
	testenv.Must(db.ExecContext(t.Context(), "INSERT INTO orders (id, state, amount, open, changed) VALUES (9007199254740993, 'a\"b\n\u00fc', '12345678901234567890.100000000000000001', true, '2026-04-07 01:23:45.000001')"))(t)
	s := source(t, d.config())
	rows := drain(t, s, poller.Cursor{}, 10)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	want := map[string]string{"id": "9007199254740993", "state": `"a\"b\nü"`, "amount": "12345678901234567890.100000000000000001",
		"open": "true", "raw": "null", "changed": `"2026-04-07T01:23:45.000001Z"`}
	switch d.dialect {
	case sqlsource.SQLite:
		want["amount"], want["changed"] = `"12345678901234567890.100000000000000001"`, `"2026-04-07 01:23:45.000001"`
	case sqlsource.MySQL:
		want["open"] = "1"
	}
	var data map[string]json.RawMessage
	if err := json.Unmarshal(rows[0].Data, &data); err != nil {
		t.Fatalf("%s: %v", rows[0].Data, err)
	}
	got := map[string]string{}
	for name, value := range data {
		got[name] = string(value)
	}
	testenv.Equal(t, "data", want, got)
	if got := rows[0].Cursor; got.Value != "9007199254740993" || got.Kind != "integer" || got.Tiebreaker != nil {
		t.Errorf("cursor %+v", got)
	}
}

// Values of filters are parameters: a value that looks like SQL is a value.
func testFilter(t *testing.T, d database) {
	d.orders(t, 6)
	s := source(t, d.config(func(c *sqlsource.Config) {
		c.Where = []sqlsource.Condition{{Column: "state", Op: "in", Value: []any{"state1", "x' OR '1'='1"}}, {Column: "id", Op: ">", Value: 2.0},
			{Column: "raw", Op: "is null"}, {Column: "changed", Op: ">", Value: "2020-01-01T00:00:00Z"}, {Column: "open", Op: "=", Value: true}}
	}))
	testenv.Must(s.Check(t.Context()))(t)
	testenv.Equal(t, "rows", []int{4, 6}, keys(t, drain(t, s, poller.Cursor{}, 10)))
	if got, want := s.Definition().Filter, "state in :where1 and id > :where2 and raw is null and changed > :where4 and open = :where5"; got != want {
		t.Errorf("filter %q, want %q", got, want)
	}
}

func testQuery(t *testing.T, d database) {
	d.orders(t, 6)
	s := source(t, d.config(func(c *sqlsource.Config) {
		c.Table, c.Query = "", "SELECT id, state AS \"what:ever\" FROM orders WHERE state = :state AND id > :least AND state <> ':state' -- :no"
		if d.dialect == sqlsource.MySQL {
			c.Query = strings.ReplaceAll(c.Query, `"`, "`")
		}
		c.Params = map[string]any{"state": "state0", "least": 1.0}
	}))
	testenv.Must(s.Check(t.Context()))(t)
	rows := drain(t, s, poller.Cursor{}, 10)
	if diff := cmp.Diff([]int{3, 5}, keys(t, rows)); diff != "" {
		t.Fatalf("rows (-want +got):\n%s", diff)
	}
	if got, want := string(rows[0].Data), `{"id":3,"what:ever":"state0"}`; got != want {
		t.Errorf("data %s, want %s", got, want)
	}
}

func testSoftDelete(t *testing.T, d database) {
	d.orders(t, 3)
	run(t, d.open(t), "UPDATE orders SET open = false WHERE id = 1", "UPDATE orders SET open = NULL WHERE id = 2")
	s := source(t, d.config(func(c *sqlsource.Config) { c.Deleted = "open" }))
	var deleted []bool
	for _, r := range drain(t, s, poller.Cursor{}, 10) {
		deleted = append(deleted, r.Deleted)
	}
	testenv.Equal(t, "deleted", []bool{false, false, true}, deleted)
}

// A row of 10 MB is returned alone, and does not block the others.
func testLargeRow(t *testing.T, d database) {
	d.orders(t, 5)
	db := d.open(t)
	placeholder := map[string]string{sqlsource.Postgres: "$1"}[d.dialect]
	if placeholder == "" {
		placeholder = "?"
	}
	testenv.Must(db.ExecContext(t.Context(), "UPDATE orders SET raw = "+placeholder+" WHERE id = 3", make([]byte, 10<<20)))(t)
	s := source(t, d.config())
	var sizes []int
	var after poller.Cursor
	// The bound of integers is known after two looks.
	testenv.Must(s.End(t.Context()))(t)
	for range 10 {
		b := testenv.Must(s.Fetch(t.Context(), after, 10, 1<<20))(t)
		if len(b.Rows) == 0 {
			break
		}
		sizes = append(sizes, len(b.Rows))
		after = b.Rows[len(b.Rows)-1].Cursor
		if more := after.Value != "5"; b.More != more {
			t.Errorf("more is %v at %s", b.More, after.Value)
		}
	}
	testenv.Equal(t, "batches", []int{2, 1, 2}, sizes)
}

func testEnd(t *testing.T, d database) {
	d.orders(t, 0)
	for _, c := range []sqlsource.Config{d.config(), d.config(byTime)} {
		s := source(t, c)
		end, err := s.End(t.Context())
		if diff := cmp.Diff(poller.Cursor{}, end); diff != "" || err != nil {
			t.Errorf("end of an empty table: %v %s", err, diff)
		}
	}
	for range 3 {
		run(t, d.open(t), "INSERT INTO orders (changed) VALUES ("+d.now+")")
	}
	for _, c := range []sqlsource.Config{d.config(), d.config(byTime)} {
		s := source(t, c)
		rows := drain(t, s, poller.Cursor{}, 10)
		end := testenv.Must(s.End(t.Context()))(t)
		testenv.Equal(t, "end", rows[2].Cursor, end)
	}
}

// Check and each Fetch that has caught up report rows without a cursor. The other rows are read, and these are read
// once they have one.
func testNullCursor(t *testing.T, d database) {
	d.orders(t, 2)
	run(t, d.open(t), "ALTER TABLE orders ADD COLUMN version "+d.integer, "UPDATE orders SET version = 1 WHERE id = 1")
	c := d.config(func(c *sqlsource.Config) { c.Cursor = "version" })
	advice, err := source(t, c).Check(t.Context())
	if text := strings.Join(advice, "; "); err != nil || !strings.Contains(text, "rows without version") || !strings.Contains(text, "NOT NULL") {
		t.Errorf("advice %q, %v", text, err)
	}
	s := source(t, c)
	testenv.Must(s.End(t.Context()))(t)
	b, err := s.Fetch(t.Context(), poller.Cursor{}, 10, 1<<20)
	if err != nil || len(b.Rows) != 1 || !strings.Contains(b.HeldBack, "version") {
		t.Errorf("%d rows, held back %q, %v", len(b.Rows), b.HeldBack, err)
	}
}

func testNullKey(t *testing.T, d database) {
	d.orders(t, 2)
	run(t, d.open(t), "UPDATE orders SET state = NULL WHERE id = 2")
	c := d.config(func(c *sqlsource.Config) { c.Keys = []string{"state"} })
	_, err := source(t, c).Check(t.Context())
	wants(t, err, sqlsource.ErrNull, "orders", "state")
	s := source(t, c)
	if _, err := s.End(t.Context()); !errors.Is(err, sqlsource.ErrNull) {
		t.Errorf("end: %v", err)
	}
	_, err = s.Fetch(t.Context(), poller.Cursor{}, 10, 1<<20)
	wants(t, err, sqlsource.ErrNull, "orders", "state")
}

func testNotUnique(t *testing.T, d database) {
	d.orders(t, 3)
	_, err := source(t, d.config(func(c *sqlsource.Config) { c.Keys = []string{"state"} })).Check(t.Context())
	wants(t, err, sqlsource.ErrNotUnique, "orders", "state")
}

// Two rows at one position are found although the limit separates them.
func testNotUniqueLater(t *testing.T, d database) {
	d.orders(t, 4)
	run(t, d.open(t), "UPDATE orders SET state = 'same', changed = '2026-04-07 01:23:45' WHERE id IN (2, 4)")
	s := source(t, d.config(byTime, func(c *sqlsource.Config) { c.Keys = []string{"state"} }))
	testenv.Must(s.End(t.Context()))(t)
	_, err := s.Fetch(t.Context(), poller.Cursor{}, 1, 1<<20)
	wants(t, err, sqlsource.ErrNotUnique, "orders", "same")
}

func testMissingColumn(t *testing.T, d database) {
	d.orders(t, 1)
	for _, change := range map[string]func(*sqlsource.Config){
		"cursor":  func(c *sqlsource.Config) { c.Cursor = "gone" },
		"key":     func(c *sqlsource.Config) { c.Keys = []string{"gone"} },
		"deleted": func(c *sqlsource.Config) { c.Deleted = "gone" },
		"where":   func(c *sqlsource.Config) { c.Where = []sqlsource.Condition{{Column: "gone", Op: "is null"}} },
	} {
		_, err := source(t, d.config(change)).Check(t.Context())
		wants(t, err, sqlsource.ErrNoColumn, "orders", "gone", "state")
	}
}

func testMissingTable(t *testing.T, d database) {
	_, err := source(t, d.config()).Check(t.Context())
	wants(t, err, sqlsource.ErrNoObject, "orders", "create it")
}

func testChangedType(t *testing.T, d database) {
	d.orders(t, 2)
	s := source(t, d.config(byTime))
	rows := drain(t, s, poller.Cursor{}, 10)
	db := d.open(t)
	if d.dialect == sqlsource.SQLite {
		run(t, db, "DROP INDEX orders_changed")
	}
	run(t, db, "ALTER TABLE orders DROP COLUMN changed", "ALTER TABLE orders ADD COLUMN changed "+d.integer)
	_, err := s.Fetch(t.Context(), rows[1].Cursor, 10, 1<<20)
	wants(t, err, sqlsource.ErrColumnType, "orders", "changed", "timestamp+pk", "reset")
}

func testDroppedTable(t *testing.T, d database) {
	d.orders(t, 2)
	s := source(t, d.config())
	rows := drain(t, s, poller.Cursor{}, 10)
	run(t, d.open(t), "DROP TABLE orders")
	_, err := s.Fetch(t.Context(), rows[1].Cursor, 10, 1<<20)
	wants(t, err, sqlsource.ErrNoObject, "orders")
}

func testAdvice(t *testing.T, d database) {
	d.orders(t, 50)
	db := d.open(t)
	check := func() string {
		t.Helper()
		advice := testenv.Must(source(t, d.config(byTime)).Check(t.Context()))(t)
		return strings.Join(advice, "\n")
	}
	if got := check(); got != "" {
		t.Errorf("advice with an index: %s", got)
	}
	drop := "DROP INDEX orders_changed"
	if d.dialect == sqlsource.MySQL {
		drop += " ON orders"
	}
	run(t, db, drop)
	if got := check(); !strings.Contains(got, "CREATE INDEX") || !strings.Contains(got, "changed") {
		t.Errorf("advice without an index: %q", got)
	}
	run(t, db, fmt.Sprintf("CREATE TABLE loose (id %s, changed %s)", d.integer, d.timestamp), "INSERT INTO loose SELECT id, changed FROM orders")
	advice, err := source(t, d.config(byTime, func(c *sqlsource.Config) { c.Table = "loose" })).Check(t.Context())
	if err != nil || !strings.Contains(strings.Join(advice, "\n"), "unique index") {
		t.Errorf("advice without a unique index: %q, %v", advice, err)
	}
}

// A position beyond the last generated number, or beyond the clock, belongs to another database.
func testWentBack(t *testing.T, d database) {
	d.orders(t, 3)
	s := source(t, d.config())
	drain(t, s, poller.Cursor{}, 10)
	_, err := s.Fetch(t.Context(), poller.Cursor{Kind: "integer", Value: "1000"}, 10, 1<<20)
	wants(t, err, sqlsource.ErrWentBack, "orders", "1000", "eset")
	run(t, d.open(t), "DELETE FROM orders")
	if _, err := s.Fetch(t.Context(), poller.Cursor{Kind: "integer", Value: "3"}, 10, 1<<20); err != nil {
		t.Errorf("rows that were deleted are no going back: %v", err)
	}
}

func testOddNames(t *testing.T, d database) {
	db := d.open(t)
	q := func(name string) string {
		if d.dialect == sqlsource.MySQL {
			return "`" + strings.ReplaceAll(name, "`", "``") + "`"
		}
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	table, id := "Order\" `Table; --", "The \"`Id']"
	run(t, db, fmt.Sprintf("CREATE TABLE %s (%s %s)", q(table), q(id), d.serial))
	placeholder := "?"
	if d.dialect == sqlsource.Postgres {
		placeholder = "$1"
	}
	for i := range 3 {
		testenv.Must(db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", q(table), q(id), placeholder), i+1))(t)
	}
	if d.dialect == sqlsource.Postgres {
		run(t, db, "SELECT setval(pg_get_serial_sequence('"+q(table)+"', '"+strings.ReplaceAll(id, "'", "''")+"'), 3)")
	}
	s := source(t, d.config(func(c *sqlsource.Config) { c.Table, c.Cursor, c.Keys = table, id, []string{id} }))
	testenv.Must(s.Check(t.Context()))(t)
	if rows := drain(t, s, poller.Cursor{}, 2); len(rows) != 3 {
		t.Errorf("%d rows, want 3", len(rows))
	}
}

// The database refuses a query that writes.
func testReadOnly(t *testing.T, d database) {
	d.orders(t, 1)
	if d.dialect != sqlsource.Postgres {
		return // other dialects do not allow writes in such a statement
	}
	s := source(t, d.config(func(c *sqlsource.Config) {
		c.Table, c.Query = "", "SELECT nextval('orders_id_seq') AS id"
	}))
	_, err := s.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("error %v", err)
	}
}

func testBadCursor(t *testing.T, d database) {
	d.orders(t, 1)
	for _, change := range map[string]func(*sqlsource.Config){
		"text": func(c *sqlsource.Config) { c.Cursor = "raw" },
		"xid":  func(c *sqlsource.Config) { c.Bound = sqlsource.BoundXID },
	} {
		c := d.config(change)
		if c.Validate() != nil {
			continue // the dialect does not have that bound
		}
		_, err := source(t, c).Check(t.Context())
		wants(t, err, sqlsource.ErrColumnType, "orders")
	}
	s := source(t, d.config())
	_, err := s.Fetch(t.Context(), poller.Cursor{Kind: "integer", Value: "1 OR 1=1"}, 10, 1<<20)
	wants(t, err, sqlsource.ErrColumnType, "orders", "1 OR 1=1")
}

// wants checks the kind of an error and the words that it must have.
func wants(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %v: want %q in it", err, w)
		}
	}
}
