package logicalsource_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of those who write
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/postgres"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/logicalsource"
)

// start starts the server of this package. Tests get it from server only.
var start = sync.OnceValues(func() (*postgres.Server, error) {
	s, err := postgres.Start(context.Background())
	if err == nil {
		stop = s.Close
	}
	return s, err
})

// stop ends the server, if it was started.
var stop = func() error { return nil }

// server returns the server that the package's tests share. -short skips the test.
func server(t testing.TB) *postgres.Server {
	t.Helper()
	testenv.Long(t)
	s, err := start()
	testenv.Started(t, err)
	return s
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(stopping{m}) }

// stopping stops the server after the tests, before goroutines are counted.
type stopping struct{ m *testing.M }

func (s stopping) Run() int {
	code := s.m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// database is an empty one for a test.
type database struct {
	*sql.DB
	t         testing.TB
	name, dsn string
}

func newDatabase(t testing.TB) database {
	t.Helper()
	return databaseOf(t, server(t))
}

func databaseOf(t testing.TB, s *postgres.Server) database {
	t.Helper()
	d := database{t: t, name: "t" + strings.ReplaceAll(uuid.NewString(), "-", "")}
	owner := openDB(t, s.DSN(postgres.User))
	testenv.Must(owner.ExecContext(t.Context(), "CREATE DATABASE "+d.name))(t)
	d.dsn = s.DSN(d.name)
	// What is committed is to be in the log at once, which the server of the tests leaves for later.
	d.DB = openDB(t, d.dsn+"&synchronous_commit=on")
	t.Cleanup(func() { // a slot that is left over keeps the log of the whole server
		_, _ = d.ExecContext(context.Background(), "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()")
	})
	return d
}

func openDB(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db := testenv.Must(sql.Open("pgx", dsn))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// run runs statements, each in a transaction of its own.
func (d database) run(statements ...string) {
	d.t.Helper()
	for _, s := range statements {
		if _, err := d.ExecContext(d.t.Context(), s); err != nil {
			d.t.Fatalf("%.200s: %v", s, err)
		}
	}
}

// slot is the name of the slot: it is the server's, and not the database's.
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

// drain reads all that there is behind a place.
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

// change takes the change out of a row, and gives what is left.
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
