package logicalsource_test

import (
	"database/sql"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the writers

	"github.com/vibedata/roundhouse/internal/postgres/postgrestest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/logicalsource"
)

var server postgrestest.Shared

func TestMain(m *testing.M) { testenv.Main(m, server.Close) }

// database is an empty database for a test.
type database struct {
	*sql.DB
	t         testing.TB
	name, dsn string
}

func newDatabase(t testing.TB) database {
	t.Helper()
	_, dsn := server.Database(t)
	return databaseAt(t, dsn)
}

// databaseAt opens a database. Commits are logged immediately, which the server of the tests would delay.
func databaseAt(t testing.TB, dsn string) database {
	t.Helper()
	d := database{t: t, name: testenv.Must(url.Parse(dsn))(t).Path[1:], dsn: dsn}
	d.DB = openDB(t, d.dsn+"&synchronous_commit=on")
	return d
}

func openDB(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db := testenv.Must(sql.Open("pgx", dsn))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// run runs statements, each in its own transaction.
func (d database) run(statements ...string) {
	d.t.Helper()
	for _, s := range statements {
		if _, err := d.ExecContext(d.t.Context(), s); err != nil {
			d.t.Fatalf("%.200s: %v", s, err)
		}
	}
}

// slot returns the name of the slot, which is unique on the server, not per database.
func (d database) slot() string { return d.name }

// publish makes the publication and the slot.
func (d database) publish(tables string) {
	d.t.Helper()
	d.run("CREATE PUBLICATION changes FOR TABLE "+tables, "SELECT pg_create_logical_replication_slot('"+d.slot()+"', 'pgoutput')")
}

func (d database) config() logicalsource.Config {
	return logicalsource.Config{Dialect: logicalsource.Dialect, DSN: d.dsn, SourceID: "test", Slot: d.slot(), Publications: []string{"changes"}}
}

func (d database) source(change ...func(*logicalsource.Config)) *logicalsource.Source {
	d.t.Helper()
	c := d.config()
	for _, f := range change {
		f(&c)
	}
	s := testenv.Must(logicalsource.Open(c))(d.t)
	d.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			d.t.Error(err)
		}
	})
	return s
}

// drain reads everything after a position.
func (d database) drain(s *logicalsource.Source, after poller.Cursor, limit, bytes int) (rows []poller.Row) {
	d.t.Helper()
	for {
		b := testenv.Must(s.Fetch(d.t.Context(), after, limit, bytes))(d.t)
		rows = append(rows, b.Rows...)
		if len(b.Rows) > 0 {
			after = b.Rows[len(b.Rows)-1].Cursor
		}
		if !b.More {
			return rows
		}
		if len(b.Rows) == 0 {
			d.t.Fatal("there is more, and nothing comes")
		}
	}
}

// change removes the change from a row, and returns the rest.
func change(t testing.TB, row poller.Row) (c logicalsource.Change, data string) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(row.Data, &members); err != nil {
		t.Fatalf("%s: %v", row.Data, err)
	}
	text := members["$change"]
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatalf("%s: %v", row.Data, err)
	}
	data, found := strings.CutSuffix(string(row.Data), `"$change":`+string(text)+"}")
	if !found {
		t.Fatalf("the change is not the last member of %s", row.Data)
	}
	return c, strings.TrimSuffix(data, ",") + "}"
}
