package logicalsource_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// seen returns a line for each row.
func seen(t testing.TB, rows []poller.Row) (lines []string) {
	t.Helper()
	for _, row := range rows {
		c, data := change(t, row)
		line := fmt.Sprintf("%s %s %s %s", c.Op, c.Table, row.Key, data)
		if row.Deleted {
			line += " deleted"
		}
		if c.OldKey != nil {
			line += " was " + string(c.OldKey)
		}
		if len(c.Unchanged) > 0 {
			line += " without " + strings.Join(c.Unchanged, ",")
		}
		if c.CommittedAt == "" || c.XID == 0 {
			line += " of no transaction"
		}
		lines = append(lines, line)
	}
	return lines
}

// Inserts, updates, deletes and truncations are read in the order of their commits, with the key that names the row.
func TestChanges(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.run("CREATE TABLE orders (id int PRIMARY KEY, state text, n numeric)", "CREATE TABLE lines (a int, b text, c text, PRIMARY KEY (b, a))", "CREATE TABLE other (id int)")
	d.publish("orders, lines")
	d.run("INSERT INTO orders VALUES (1, 'new', 1.50)",
		"BEGIN; UPDATE orders SET state = 'paid'; INSERT INTO lines VALUES (1, 'x', NULL); SAVEPOINT s; INSERT INTO lines VALUES (2, 'y', NULL); ROLLBACK TO s; COMMIT",
		"BEGIN; INSERT INTO orders VALUES (9); ROLLBACK", "INSERT INTO other VALUES (1)",
		"UPDATE orders SET id = 2", "UPDATE lines SET a = 5", "DELETE FROM orders", "DELETE FROM lines", "TRUNCATE orders, lines")
	want := []string{
		`insert public.orders {"id":1} {"id":1,"state":"new","n":1.50}`,
		`update public.orders {"id":1} {"id":1,"state":"paid","n":1.50}`,
		`insert public.lines {"a":1,"b":"x"} {"a":1,"b":"x","c":null}`,
		`update public.orders {"id":2} {"id":2,"state":"paid","n":1.50} was {"id":1}`,
		`update public.lines {"a":5,"b":"x"} {"a":5,"b":"x","c":null} was {"a":1,"b":"x"}`,
		`delete public.orders {"id":2} {"id":2} deleted`,
		`delete public.lines {"a":5,"b":"x"} {"a":5,"b":"x"} deleted`,
		`truncate public.orders {} {} deleted`,
		`truncate public.lines {} {} deleted`,
	}
	s := d.source()
	testenv.Must(s.Check(t.Context()))(t)
	testenv.Equal(t, "changes", want, seen(t, d.drain(s, poller.Cursor{}, 100, 1<<20)))
}

// With REPLICA IDENTITY FULL, a delete has all columns, the key is still the primary key, and no value is missing.
func TestIdentityFull(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.run("CREATE TABLE orders (id int PRIMARY KEY, state text)", "ALTER TABLE orders REPLICA IDENTITY FULL", "CREATE TABLE bare (a int, b text)", "ALTER TABLE bare REPLICA IDENTITY FULL")
	d.publish("orders, bare")
	d.run("INSERT INTO orders VALUES (1, 'new')", "UPDATE orders SET id = 2, state = 'paid'", "DELETE FROM orders", "INSERT INTO bare VALUES (1, NULL)", "UPDATE bare SET b = 'x'")
	want := []string{
		`insert public.orders {"id":1} {"id":1,"state":"new"}`,
		`update public.orders {"id":2} {"id":2,"state":"paid"} was {"id":1}`,
		`delete public.orders {"id":2} {"id":2,"state":"paid"} deleted`,
		`insert public.bare {"a":1,"b":null} {"a":1,"b":null}`,
		`update public.bare {"a":1,"b":"x"} {"a":1,"b":"x"} was {"a":1,"b":null}`,
	}
	testenv.Equal(t, "changes", want, seen(t, d.drain(d.source(), poller.Cursor{}, 100, 1<<20)))
}

// A large value that an update leaves unchanged is not in the log: the row names it, and with REPLICA IDENTITY FULL it
// has it.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.run("CREATE TABLE orders (id int PRIMARY KEY, n int, doc text)", "ALTER TABLE orders ALTER doc SET STORAGE EXTERNAL")
	d.publish("orders")
	d.run("INSERT INTO orders VALUES (1, 1, repeat('x', 10000))", "UPDATE orders SET n = 2", "ALTER TABLE orders REPLICA IDENTITY FULL", "UPDATE orders SET n = 3")
	doc := strings.Repeat("x", 10000)
	want := []string{
		`insert public.orders {"id":1} {"id":1,"n":1,"doc":"` + doc + `"}`,
		`update public.orders {"id":1} {"id":1,"n":2} without doc`,
		`update public.orders {"id":1} {"id":1,"n":3,"doc":"` + doc + `"}`,
	}
	testenv.Equal(t, "changes", want, seen(t, d.drain(d.source(), poller.Cursor{}, 100, 1<<20)))
}

// Values are encoded like those of package sqlsource for the same table, byte by byte.
func TestTypes(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.run("CREATE TYPE mood AS ENUM ('sad', 'happy')", "CREATE TYPE pair AS (a int, b text)", "CREATE DOMAIN positive AS numeric CHECK (value > 0)",
		"CREATE DOMAIN moods AS mood[]")
	columns := []struct{ typ, value string }{
		{"smallint", "-7"}, {"int", "2147483647"}, {"bigint", "9007199254740993"}, {"oid", "4000000000"},
		{"numeric", "'12345678901234567890.100000000000000001'"}, {"numeric", "'NaN'"}, {"numeric(10,3)", "1.5"},
		{"real", "0.1"}, {"real", "'-Infinity'"}, {"date", "'0044-03-15 BC'"}, {"timestamptz", "'0044-03-15 01:02:03+00 BC'"}, {"double precision", "0.1"}, {"double precision", "'Infinity'"}, {"double precision", "'NaN'"}, {"double precision", "0.1::float8 + 0.2::float8"}, {"double precision", "1e300"}, {"real", "1e-30"},
		{"boolean", "true"}, {"boolean", "false"}, {"boolean", "NULL"},
		{"text", `E'a"b\n\\ü€𝄞\t'`}, {"text", "''"}, {"varchar(20)", "'v'"}, {"char(5)", "'ab'"}, {"name", "'n'"}, {`"char"`, "'c'"},
		{"uuid", "'04752c86-1b1f-4f0e-9c59-6a8f5c2d7e10'"}, {"bytea", `'\x00ff10'`}, {"bytea", `''`},
		{"timestamptz", "'2026-04-07 01:23:45.123456+02'"}, {"timestamptz", "'infinity'"}, {"timestamptz", "'2026-04-07 00:00:00'"},
		{"timestamp", "'2026-04-07 01:23:45.1'"}, {"date", "'2026-04-07'"}, {"time", "'01:02:03.5'"}, {"timetz", "'01:02:03+02'"}, {"interval", "'1 year 2 days 03:04:05.6'"},
		{"json", `'{"a": 1.10,  "b": [true]}'`}, {"jsonb", `'{"b": 9007199254740993, "a": null}'`}, {"jsonb", `'"text"'`}, {"json", "'null'"},
		{"int[]", "'{1,NULL,3}'"}, {"text[]", `'{"a\"b",NULL,"{}"}'`}, {"int[]", "'{{1,2},{3,4}}'"}, {"timestamptz[]", "'{2026-04-07 01:23:45.5+02}'"}, {"jsonb[]", `ARRAY['{"a":1}'::jsonb]`},
		{"mood", "'happy'"}, {"mood[]", "'{sad,happy}'"}, {"moods", "'{sad}'"}, {"pair", "ROW(1,'x')"}, {"pair[]", "ARRAY[ROW(1,'x')::pair]"}, {"positive", "1.50"},
		{"int4range", "'[1,5)'"}, {"tstzrange", "'[2026-04-07,)'"}, {"inet", "'10.0.0.1/8'"}, {"macaddr", "'08:00:2b:01:02:03'"}, {"point", "'(1,2.5)'"}, {"money", "1234.5"},
		{"bit(4)", "B'1010'"}, {"xml", "'<a/>'"}, {"tsvector", "'a b'"}, {"xid8", "'18446744073709551615'"}, {"pg_lsn", "'16/B374D848'"}, {"int2vector", "'1 2'"},
	}
	definitions, values := "", ""
	for i, c := range columns {
		definitions += fmt.Sprintf(", c%d %s", i, c.typ)
		values += ", " + c.value
	}
	d.run("CREATE TABLE everything (id int PRIMARY KEY" + definitions + ")")
	d.publish("everything")
	d.run("ALTER DATABASE "+d.name+" SET bytea_output = escape", "ALTER DATABASE "+d.name+" SET extra_float_digits = -5", "ALTER DATABASE "+d.name+" SET IntervalStyle = iso_8601",
		"INSERT INTO everything VALUES (1"+values+")")
	table, err := sqlsource.Open(sqlsource.Config{Dialect: sqlsource.Postgres, DSN: d.dsn + "&intervalstyle=postgres", SourceID: "test", Table: "everything", Cursor: "id", Keys: []string{"id"}, Settle: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = table.Close() }()
	var want []poller.Row
	for len(want) == 0 {
		b := testenv.Must(table.Fetch(t.Context(), poller.Cursor{}, 1, 1<<20))(t)
		want = b.Rows
	}
	rows := d.drain(d.source(), poller.Cursor{}, 10, 1<<20)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	_, got := change(t, rows[0])
	if diff := cmp.Diff(strings.Split(string(want[0].Data), `,"c`), strings.Split(got, `,"c`)); diff != "" {
		t.Errorf("data (-sqlsource +logicalsource):\n%s", diff)
	}
}

// A value whose type was dropped before the read, or no longer accepts it, is text.
func TestTypeIsGone(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.run("CREATE TYPE pair AS (a int, b text)", "CREATE TYPE changed AS (a int, b text)", "CREATE TABLE orders (id int PRIMARY KEY, p pair, c changed, l int[])")
	d.publish("orders")
	d.run("INSERT INTO orders VALUES (1, ROW(1,'x'), ROW(2,'y'), '{1}')", "ALTER TABLE orders DROP p, DROP c", "DROP TYPE pair", "ALTER TYPE changed DROP ATTRIBUTE b", "INSERT INTO orders VALUES (2, '{2}')")
	want := []string{`insert public.orders {"id":1} {"id":1,"p":"(1,x)","c":"(2,y)","l":[1]}`, `insert public.orders {"id":2} {"id":2,"l":[2]}`}
	testenv.Equal(t, "changes", want, seen(t, d.drain(d.source(), poller.Cursor{}, 100, 1<<20)))
}
