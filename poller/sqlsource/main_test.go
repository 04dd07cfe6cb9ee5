package sqlsource_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/mariadb"
	"github.com/vibedata/roundhouse/internal/postgres/postgrestest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller/sqlsource"
)

// The servers that the package's tests share. Tests get MariaDB from mariaServer only.
var (
	postgresServer postgrestest.Shared
	stopMaria      = func() error { return nil }
	startMaria     = sync.OnceValues(func() (*mariadb.Server, error) {
		s, err := mariadb.Start(context.Background())
		if err == nil {
			stopMaria = s.Close
		}
		return s, err
	})
)

// mariaServer returns the server that the package's tests share. -short skips the test.
func mariaServer(t testing.TB) *mariadb.Server {
	t.Helper()
	testenv.Long(t)
	s, err := startMaria()
	testenv.Started(t, err)
	return s
}

func TestMain(m *testing.M) {
	testenv.Main(m, func() error { return errors.Join(postgresServer.Close(), stopMaria()) })
}

// database is an empty database for a test, with the SQL forms that tests need.
type database struct {
	dialect, dsn, driver string
	// types by purpose, and a clock with microseconds.
	integer, serial, timestamp, decimal, boolean, bytes, now string
	// settle is short, because the tests have no transaction whose time is before its start.
	settle time.Duration
}

func (d database) open(t testing.TB) *sql.DB {
	t.Helper()
	db := testenv.Must(sql.Open(d.driver, d.dsn))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// databases returns constructors of an empty database for each dialect, by the names of subtests.
func databases() map[string]func(testing.TB) database {
	return map[string]func(testing.TB) database{"postgres": newPostgres, "sqlite": newSQLite, "mariadb": newMaria}
}

// uniqueName returns a name for a database, a user or a slot that is new on a server that packages share.
func uniqueName() string { return "t" + strings.ReplaceAll(uuid.NewString(), "-", "") }

func newPostgres(t testing.TB) database {
	t.Helper()
	_, dsn := postgresServer.Database(t)
	return database{dialect: sqlsource.Postgres, driver: "pgx", dsn: dsn, integer: "bigint",
		serial: "bigserial PRIMARY KEY", timestamp: "timestamptz", decimal: "numeric", boolean: "boolean", bytes: "bytea",
		now: "clock_timestamp()", settle: 50 * time.Millisecond}
}

func newMaria(t testing.TB) database {
	t.Helper()
	s, name := mariaServer(t), uniqueName()
	d := database{dialect: sqlsource.MySQL, driver: "mysql", dsn: s.DSN(""), integer: "bigint",
		serial: "bigint AUTO_INCREMENT PRIMARY KEY", timestamp: "timestamp(6)", decimal: "decimal(38,18)", boolean: "boolean",
		bytes: "longblob", now: "NOW(6)", settle: 2 * time.Second}
	run(t, d.open(t), "CREATE DATABASE "+name)
	d.dsn = s.DSN(name)
	return d
}

func newSQLite(t testing.TB) database {
	t.Helper()
	d := database{dialect: sqlsource.SQLite, driver: "sqlite", dsn: "file:" + filepath.Join(t.TempDir(), "test.db") + "?_pragma=busy_timeout(5000)",
		integer: "integer", serial: "integer PRIMARY KEY AUTOINCREMENT", timestamp: "timestamp", decimal: "text", boolean: "boolean",
		bytes: "blob", now: "strftime('%Y-%m-%dT%H:%M:%fZ')", settle: 50 * time.Millisecond}
	run(t, d.open(t), "PRAGMA journal_mode = WAL")
	return d
}

func run(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			t.Fatalf("%.200s: %v", s, err)
		}
	}
}
