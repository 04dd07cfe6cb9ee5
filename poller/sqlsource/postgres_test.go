package sqlsource_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// begin opens a transaction that has only read so far.
func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx := testenv.Must(db.BeginTx(t.Context(), nil))(t)
	t.Cleanup(func() { _ = tx.Rollback() })
	testenv.Must(tx.ExecContext(t.Context(), "SELECT 1"))(t)
	return tx
}

// A transaction that has not written yet holds rows back, and the batch names it; a reader's transaction does not.
func TestPostgresHeldBack(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	db := d.open(t)
	tx := begin(t, db)
	d.orders(t, 2)
	// Longer than the window, so that only the transaction can be the reason.
	run(t, db, "SELECT pg_sleep(0.2)")
	s := source(t, d.config(byTime))
	b, err := s.Fetch(t.Context(), poller.Cursor{}, 10, 1<<20)
	if err != nil || len(b.Rows) != 0 || !strings.Contains(b.HeldBack, "process ") {
		t.Errorf("%d rows, held back %q, %v", len(b.Rows), b.HeldBack, err)
	}
	reader := source(t, d.config(byTime, func(c *sqlsource.Config) { c.Readers = []string{"postgres", `o"d\d`} }))
	if b, err := reader.Fetch(t.Context(), poller.Cursor{}, 10, 1<<20); err != nil || len(b.Rows) != 2 {
		t.Errorf("behind a reader: %d rows, held back %q, %v", len(b.Rows), b.HeldBack, err)
	}
	testenv.OK(t, tx.Rollback())
	if rows := drain(t, s, poller.Cursor{}, 10); len(rows) != 2 {
		t.Errorf("%d rows after the transaction", len(rows))
	}
}

// The start of a prepared transaction is unknown.
func TestPostgresPrepared(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	d.orders(t, 1)
	db := d.open(t)
	tx := begin(t, db)
	for _, statement := range []string{"INSERT INTO orders (changed) VALUES (now())", "PREPARE TRANSACTION 'forgotten'"} {
		testenv.Must(tx.ExecContext(t.Context(), statement))(t)
	}
	s := source(t, d.config(byTime))
	b, err := s.Fetch(t.Context(), poller.Cursor{}, 10, 1<<20)
	if err != nil || len(b.Rows) != 0 || !strings.Contains(b.HeldBack, "forgotten") {
		t.Errorf("%d rows, held back %q, %v", len(b.Rows), b.HeldBack, err)
	}
	run(t, db, "COMMIT PREPARED 'forgotten'")
	if rows := drain(t, s, poller.Cursor{}, 10); len(rows) != 2 {
		t.Errorf("%d rows after the transaction", len(rows))
	}
}

// Setups that would silently lose rows are refused.
func TestPostgresBoundRefused(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	d.orders(t, 1)
	db := d.open(t)
	server, user := postgresServer.Server(t), uniqueName()
	run(t, db, "CREATE USER "+user+" PASSWORD 'geheim'", "GRANT SELECT ON orders TO "+user)
	c := d.config(byTime)
	c.DSN = strings.Replace(d.dsn, strings.SplitN(strings.TrimPrefix(d.dsn, "postgres://"), "@", 2)[0], user+":geheim", 1)
	_, err := source(t, c).Check(t.Context())
	wants(t, err, sqlsource.ErrBound, "orders", "pg_read_all_stats")
	run(t, db, "GRANT pg_read_all_stats TO "+user)
	if _, err := source(t, c).Check(t.Context()); err != nil {
		t.Error(err)
	}
	run(t, db, "REVOKE SELECT ON orders FROM "+user)
	_, err = source(t, c).Check(t.Context())
	wants(t, err, sqlsource.ErrLogin, "orders", "GRANT")

	run(t, db, "ALTER SEQUENCE orders_id_seq CACHE 20")
	_, err = source(t, d.config()).Check(t.Context())
	wants(t, err, sqlsource.ErrBound, "orders_id_seq", "CACHE 1")

	c.DSN = server.DSNFor("postgres", "not-the-password", "postgres")
	_, err = source(t, c).Check(t.Context())
	wants(t, err, sqlsource.ErrLogin, "orders")
	if err != nil && strings.Contains(err.Error(), "not-the-password") {
		t.Errorf("the password is in %v", err)
	}
	c.DSN = server.DSN("nowhere")
	_, err = source(t, c).Check(t.Context())
	wants(t, err, sqlsource.ErrNoObject, "nowhere")
}

// Each type is read without loss.
func TestPostgresTypes(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	run(t, d.open(t), `CREATE TYPE mood AS ENUM ('glad')`, `CREATE TABLE orders (id numeric PRIMARY KEY, i2 smallint, f8 float8, nan float8,
		never timestamptz, local timestamp(6), day date, at time, u uuid, js json, jb jsonb, raw bytea, list int[], span interval,
		mood mood, big numeric, notnumber numeric, f4 real, least real, most float8, lowest numeric, small float8,
		ides date, idus timestamptz, nonae timestamp, far date)`,
		`INSERT INTO orders VALUES (1.5, -3, 0.1, 'NaN', 'infinity', '2026-04-07 01:23:45.000001', '2026-04-07', '01:02:03',
		'00000000-0000-0000-0000-000000000001', '{"a" : 1e2}', '{"b":12345678901234567890.5}', '\x00ff', '{1,2}', '1 day', 'glad',
		1e30, 'NaN', 0.1, '-Infinity', 'Infinity', '-Infinity', 5e-324,
		'0044-03-15 BC', '0044-03-15 01:02:03+00 BC', '0044-03-15 01:02:03.5 BC', '12345-01-02')`)
	rows := drain(t, source(t, d.config()), poller.Cursor{}, 10)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	want := `{"id":1.5,"i2":-3,"f8":0.1,"nan":"NaN","never":"infinity","local":"2026-04-07T01:23:45.000001","day":"2026-04-07",` +
		`"at":"01:02:03","u":"00000000-0000-0000-0000-000000000001","js":{"a" : 1e2},"jb":{"b": 12345678901234567890.5},"raw":"AP8=",` +
		`"list":[1, 2],"span":"1 day","mood":"glad","big":1000000000000000000000000000000,"notnumber":"NaN",` +
		`"f4":0.1,"least":"-Infinity","most":"Infinity","lowest":"-Infinity","small":5e-324,` +
		`"ides":"0044-03-15 BC","idus":"0044-03-15T01:02:03Z BC","nonae":"0044-03-15T01:02:03.5 BC","far":"12345-01-02"}`
	testenv.Equal(t, "data", want, string(rows[0].Data))
	testenv.Equal(t, "cursor", poller.Cursor{Kind: "integer", Value: "1.5"}, rows[0].Cursor)
}

// Positions of each kind of cursor and key are restored exactly.
func TestPostgresPlaces(t *testing.T) {
	t.Parallel()
	for name, typ := range map[string]string{"timestamp": "timestamp", "timestamptz": "timestamptz(3)", "numeric": "numeric(30,10)",
		"smallint": "smallint", "date": "date", "timestamptz BC": "timestamptz", "date BC": "date", "timestamp BC": "timestamp", "xid8": "xid8 DEFAULT pg_current_xact_id()"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newPostgres(t)
			db := d.open(t)
			run(t, db, "CREATE TABLE orders (at "+typ+", region text, id uuid DEFAULT gen_random_uuid(), PRIMARY KEY (region, id))")
			for i := range 6 {
				value := map[string]string{"numeric": fmt.Sprintf("'%d.0000000001'", i/2), "smallint": fmt.Sprint(i / 2), "xid8": "DEFAULT"}[name]
				if value == "" && strings.HasSuffix(name, "BC") {
					value = fmt.Sprintf("'0044-03-1%d 01:02:03.456 BC'", i/2)
				} else if value == "" {
					value = fmt.Sprintf("'2020-01-0%d 01:02:03.456'", 1+i/2)
				}
				run(t, db, fmt.Sprintf("INSERT INTO orders (at, region) VALUES (%s, 'r%d')", value, i%2))
			}
			c := d.config(func(c *sqlsource.Config) { c.Cursor, c.Keys = "at", []string{"region", "id"} })
			if name == "xid8" {
				c.Bound = sqlsource.BoundXID
			}
			s := source(t, c)
			testenv.Must(s.Check(t.Context()))(t)
			seen := map[string]bool{}
			for _, r := range drain(t, s, poller.Cursor{}, 1) {
				seen[string(r.Key)] = true
				if !json.Valid(r.Cursor.Tiebreaker) {
					t.Errorf("tiebreaker %s", r.Cursor.Tiebreaker)
				}
			}
			if len(seen) != 6 {
				t.Errorf("%d different rows one by one, want 6", len(seen))
			}
		})
	}
}

// A cursor without a time zone is compared in the configured zone.
func TestPostgresCursorZone(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	db := d.open(t)
	run(t, db, "CREATE TABLE orders (id bigint PRIMARY KEY, at timestamp)",
		"INSERT INTO orders VALUES (1, now() AT TIME ZONE 'America/New_York' - interval '1 minute'), (2, now() AT TIME ZONE 'America/New_York' + interval '1 minute')")
	s := source(t, d.config(func(c *sqlsource.Config) { c.Cursor, c.CursorZone = "at", "America/New_York" }))
	b := testenv.Must(s.Fetch(t.Context(), poller.Cursor{}, 10, 1<<20))(t)
	if diff := cmp.Diff([]int{1}, keys(t, b.Rows)); diff != "" || b.HeldBack == "" {
		t.Errorf("held back %q, rows (-want +got):\n%s", b.HeldBack, diff)
	}
}

// An unreachable database is an error with a kind, in time, for every dialect, and never contains a password.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	for dialect, dsn := range map[string]string{
		sqlsource.Postgres:  "postgres://app:geheim@127.0.0.1:1/db",
		sqlsource.MySQL:     "app:geheim@tcp(127.0.0.1:1)/db",
		sqlsource.SQLServer: "sqlserver://app:geheim@127.0.0.1:1?database=db",
		sqlsource.SQLite:    t.TempDir() + "/not-there.db",
	} {
		s := source(t, sqlsource.Config{Dialect: dialect, DSN: dsn, SourceID: "x", Table: "orders", Cursor: "id", Keys: []string{"id"}, Timeout: 5 * time.Second})
		_, err := s.Check(t.Context())
		wants(t, err, sqlsource.ErrConnection, dialect, "orders", "check")
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("the password is in %v", err)
		}
	}
	for dialect, dsn := range map[string]string{sqlsource.Postgres: "postgres://app:geheim@[::1/db", sqlsource.MySQL: "app:geheim@nonsense", sqlsource.SQLServer: "sqlserver://app:geheim@host:port/x"} {
		_, err := sqlsource.Open(sqlsource.Config{Dialect: dialect, DSN: dsn, SourceID: "x", Table: "orders", Cursor: "id", Keys: []string{"id"}})
		if !errors.Is(err, sqlsource.ErrConnection) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: error %v", dialect, err)
		}
	}
}
