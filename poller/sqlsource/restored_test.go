package sqlsource_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// polled is a poller whose state outlives its sources.
type polled struct {
	store poller.Store
	rows  int
}

func newPolled(t testing.TB) *polled {
	t.Helper()
	store := poller.BlobStore{Blobs: blobs.NewMemory()}
	testenv.OK(t, store.Create(t.Context()))
	return &polled{store: store}
}

// tick runs the poller once on a source, in a new process.
func (p *polled) tick(t testing.TB, c sqlsource.Config) (poller.Result, error) {
	t.Helper()
	r := testenv.Must(poller.NewRunner(poller.RunnerConfig{Name: "orders", Source: source(t, c), Store: p.store, Handler: poller.HandlerFunc(func(_ context.Context, d poller.Delivery) error {
		p.rows += len(d.Rows)
		return nil
	})}))(t)
	var result poller.Result
	var err error
	testenv.Until(t, "the rows that settle", func() bool {
		var next poller.Result
		next, err = r.Tick(t.Context())
		result.Rows += next.Rows
		result.Drained = next.Drained
		return err != nil || next.HeldBack == ""
	})
	return result, err
}

// fails checks that the poller fails on two ticks and delivers nothing, and that its state and its lag report that.
func (p *polled) fails(t testing.TB, c sqlsource.Config, sentinel error, texts ...string) {
	t.Helper()
	for range 2 {
		before := p.rows
		result, err := p.tick(t, c)
		if !errors.Is(err, sentinel) || p.rows != before || result.Drained {
			t.Fatalf("%+v, %d rows delivered, %v; want %v", result, p.rows-before, err, sentinel)
		}
		for _, text := range append(texts, "`roundhouse poller reset-to-beginning ") {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v: without %q", err, text)
			}
		}
	}
	if view := testenv.Must(p.operator().Show(t.Context(), "orders"))(t); view.Condition(nil) != poller.Failing {
		t.Errorf("condition %s", view.Condition(nil))
	}
}

func (p *polled) operator() poller.Operator { return poller.Operator{Store: p.store} }

// more writes rows.
func (d database) more(t testing.TB, n int) {
	t.Helper()
	db := d.open(t)
	for range n {
		run(t, db, "INSERT INTO orders (state, amount, changed) VALUES ('new', '1', "+d.now+")")
	}
}

// dump saves the database, and returns a function that restores it in place.
func (d database) dump(t testing.TB) (restore func()) {
	t.Helper()
	switch d.dialect {
	case sqlsource.Postgres:
		testenv.Programs(t, "pg_dump")
		text := string(testenv.Must(exec.Command("pg_dump", "--inserts", "--clean", "--dbname="+d.dsn).Output())(t))
		text = regexp.MustCompile(`(?m)^\\.*$`).ReplaceAllString(text, "") // commands of psql
		return func() { run(t, d.open(t), text) }
	case sqlsource.MySQL:
		testenv.Programs(t, "mariadb-dump")
		c := testenv.Must(mysql.ParseDSN(d.dsn))(t)
		dump := exec.Command("mariadb-dump", "--no-defaults", "--socket="+c.Addr, "--user="+c.User, c.DBName)
		dump.Env = append(os.Environ(), "MYSQL_PWD="+c.Passwd)
		text := string(testenv.Must(dump.Output())(t))
		c.MultiStatements = true
		return func() {
			db := testenv.Must(sql.Open("mysql", c.FormatDSN()))(t)
			defer db.Close()
			run(t, db, text)
		}
	default:
		path, _, _ := strings.Cut(strings.TrimPrefix(d.dsn, "file:"), "?")
		run(t, d.open(t), "VACUUM INTO '"+path+".copy'")
		return func() {
			for _, beside := range []string{"-wal", "-shm"} {
				if err := os.Remove(path + beside); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			testenv.OK(t, os.Rename(path+".copy", path))
		}
	}
}

// cursors are the possible cursors of a restored table.
func (d database) cursors() map[string]func(*sqlsource.Config) {
	all := map[string]func(*sqlsource.Config){"number": func(c *sqlsource.Config) { c.Bound = sqlsource.BoundSettle }, "time": byTime}
	switch d.dialect {
	case sqlsource.Postgres:
		all["xid"] = func(c *sqlsource.Config) { c.Cursor, c.Bound = "tx", sqlsource.BoundXID }
	case sqlsource.SQLite:
		all["number"] = func(*sqlsource.Config) {}
	}
	return all
}

// A database that was restored to an earlier point in time is an error on every tick until a reset, and is not reported
// as caught up.
func TestRestoredDatabase(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.orders(t, 0)
			if name == "postgres" {
				run(t, d.open(t), "ALTER TABLE orders ADD COLUMN tx xid8 NOT NULL DEFAULT pg_current_xact_id()")
			}
			d.more(t, 4)
			restore := d.dump(t)
			d.more(t, 3)
			pollers := map[string]*polled{}
			for cursor, by := range d.cursors() {
				pollers[cursor] = newPolled(t)
				if result, err := pollers[cursor].tick(t, d.config(by)); err != nil || result.Rows != 7 {
					t.Fatalf("%s: %+v, %v", cursor, result, err)
				}
			}
			restore()
			for cursor, by := range d.cursors() {
				p, c := pollers[cursor], d.config(by)
				p.fails(t, c, sqlsource.ErrWentBack, "the table ends at", "`roundhouse poller reset-to-cursor POLLER ")
				testenv.Must(p.operator().ResetToBeginning(t.Context(), "orders", poller.ChangeOptions{}))(t)
				if result, err := p.tick(t, c); err != nil || result.Rows != 4 || !result.Drained {
					t.Errorf("%s: after the reset %+v, %v", cursor, result, err)
				}
			}
		})
	}
}

// A poller of another database fails, also when that one has as many rows or more, until it is reset or accepted.
func TestAnotherDatabase(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := open(t)
			before.orders(t, 4)
			for _, n := range []int{3, 4, 6} {
				after, p := open(t), newPolled(t)
				after.orders(t, n)
				if result, err := p.tick(t, before.config()); err != nil || result.Rows != 4 {
					t.Fatalf("%+v, %v", result, err)
				}
				c := after.config()
				p.fails(t, c, poller.ErrFingerprint, "database: was ", "`roundhouse poller accept-fingerprint orders`")
				if view := testenv.Must(p.operator().Show(t.Context(), "orders"))(t); !errors.Is(view.Document.CheckDatabase(t.Context(), source(t, c)), poller.ErrFingerprint) {
					t.Error("the state is of this database")
				}
				testenv.Must(p.operator().AcceptFingerprint(t.Context(), "orders", source(t, c).Definition(), poller.ChangeOptions{}))(t)
				if n < 4 {
					p.fails(t, c, sqlsource.ErrWentBack)
				} else if result, err := p.tick(t, c); err != nil || result.Rows != n-4 {
					t.Errorf("%d rows: %+v, %v", n, result, err)
				}
			}
		})
	}
}

// A recreated database under the same address is another one where its server shows that.
func TestRecreatedDatabase(t *testing.T) {
	t.Parallel()
	name, dsn := postgresServer.Database(t)
	d := newPostgres(t)
	admin := d.open(t)
	d.dsn = dsn
	make := func() {
		db := d.open(t)
		run(t, db, "CREATE TABLE orders (id bigserial PRIMARY KEY)", "INSERT INTO orders SELECT FROM generate_series(1, 4)")
		testenv.OK(t, db.Close())
	}
	make()
	p := newPolled(t)
	if result, err := p.tick(t, d.config()); err != nil || result.Rows != 4 {
		t.Fatalf("%+v, %v", result, err)
	}
	run(t, admin, "DROP DATABASE "+name+" WITH (FORCE)", "CREATE DATABASE "+name)
	make()
	p.fails(t, d.config(), poller.ErrFingerprint, "databaseId: was ")
}

// Every user may read the id of a PostgreSQL database, unless an administrator has revoked the right; the id is then
// unknown. SQLite has none.
func TestDatabaseIDNeedsNoRight(t *testing.T) {
	t.Parallel()
	d := newPostgres(t)
	d.orders(t, 1)
	user := uniqueName()
	run(t, d.open(t), "CREATE USER "+user+" PASSWORD 'geheim'", "GRANT SELECT ON orders TO "+user, "GRANT pg_read_all_stats TO "+user)
	reader := d
	reader.dsn = strings.Replace(d.dsn, strings.SplitN(strings.TrimPrefix(d.dsn, "postgres://"), "@", 2)[0], user+":geheim", 1)
	owners, readers := source(t, d.config()), source(t, reader.config())
	want := testenv.Must(owners.DatabaseID(t.Context()))(t)
	if got := testenv.Must(readers.DatabaseID(t.Context()))(t); got != want || !regexp.MustCompile(`^[0-9]+/[0-9]+$`).MatchString(got) {
		t.Errorf("%q, and %q for another user", want, got)
	}
	if a, b := owners.Definition().Database, readers.Definition().Database; a != b || a == "" {
		t.Errorf("addresses %q and %q", a, b)
	}
	run(t, d.open(t), "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM public")
	if got := testenv.Must(readers.DatabaseID(t.Context()))(t); got != "" {
		t.Errorf("without the right: %q", got)
	}
	p := newPolled(t)                            // the reader may not read the sequence either
	for _, d := range []database{d, reader, d} { // losing and gaining the right does not change the database
		if _, err := p.tick(t, d.config()); err != nil {
			t.Error(err)
		}
	}
	if got := testenv.Must(source(t, newSQLite(t).config()).DatabaseID(t.Context()))(t); got != "" {
		t.Errorf("SQLite: %q", got)
	}
}

// Deleted rows are no failure where the table generates the numbers of the cursor, or where they are expected.
// Elsewhere the failure ends with the next change.
func TestDeletedEndOfATable(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.orders(t, 4)
			expected := func(c *sqlsource.Config) { byTime(c); c.ExpectDeletes = true }
			byNumber, byChange, byBoth := newPolled(t), newPolled(t), newPolled(t)
			ok := func(p *polled, rows int, change ...func(*sqlsource.Config)) {
				t.Helper()
				if result, err := p.tick(t, d.config(change...)); err != nil || result.Rows != rows {
					t.Errorf("%+v, %v", result, err)
				}
			}
			ok(byNumber, 4)
			ok(byChange, 4, byTime)
			ok(byBoth, 4, expected)
			for _, rows := range []string{"id = 4", "id > 0"} {
				run(t, d.open(t), "DELETE FROM orders WHERE "+rows)
				ok(byNumber, 0)
				ok(byBoth, 0, expected)
				byChange.fails(t, d.config(byTime), sqlsource.ErrWentBack, "expectDeletes")
			}
			d.more(t, 1)
			ok(byNumber, 1)
			ok(byBoth, 1, expected)
			ok(byChange, 1, byTime)
		})
	}
}

// Another user, password or option is no other database, and the state contains none of them.
func TestAddressHasNoCredentials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect, want string
		dsns          []string
	}{
		{sqlsource.Postgres, "db.example:5432/shop", []string{"postgres://app:s3cret@db.example/shop", "postgresql://other@DB.example:5432/shop?sslmode=disable&application_name=x",
			"host=db.example user=app password='s3 cret' dbname=shop"}},
		{sqlsource.Postgres, "a:5432,b:5433/shop", []string{"postgres://app:s3cret@a,b:5433/shop"}},
		{sqlsource.Postgres, "", []string{"postgres://app:S3cret@TailOfPassword@db/shop", "nonsense"}},
		{sqlsource.MySQL, "db.example:3306/shop", []string{"app:s3cret@tcp(db.example)/shop", "other@tcp(db.example:3306)/shop?tls=skip-verify", "app:p@ss/word@tcp(DB.example)/shop"}},
		{sqlsource.SQLServer, "db.example:1433/shop", []string{"sqlserver://app:s3cret@db.example:1433?database=shop", "server=db.example;port=1433;user id=app;password=s3cret;database=shop"}},
		{sqlsource.SQLite, "/data/shop.db", []string{"/data/shop.db", "file:/data/shop.db?_pragma=key('s3cret')", "file:/data/./shop.db?mode=ro"}},
		{sqlsource.SQLite, "", []string{"postgres://app:s3cret@db.example/shop"}},
	} {
		for _, dsn := range c.dsns {
			if got := (sqlsource.Config{Dialect: c.dialect, DSN: dsn}).Definition().Database; got != c.want {
				t.Errorf("%s: %q, want %q", dsn, got, c.want)
			}
		}
	}
}
