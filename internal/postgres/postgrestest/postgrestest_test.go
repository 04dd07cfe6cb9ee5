package postgrestest

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/vibedata/roundhouse/internal/filelock"
	"github.com/vibedata/roundhouse/internal/testenv"
)

var lane Shared

func TestMain(m *testing.M) { testenv.Main(m, lane.Close) }

// A package that finds a lane's server uses it, in its own databases that it leaves clean, and keeps other packages out
// meanwhile. Not parallel: it changes the environment.
func TestServe(t *testing.T) {
	own := lane.Server(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, address), []byte(own.DSN("postgres")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(testenv.Servers, dir)
	var left string
	t.Run("a test", func(t *testing.T) {
		var s Shared
		name, dsn := s.Database(t)
		left = name
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, statement := range []string{"CREATE TABLE rows (n int)", "SELECT pg_create_logical_replication_slot('" + name + "', 'pgoutput')",
			"BEGIN; INSERT INTO rows VALUES (1); PREPARE TRANSACTION 'left''behind'"} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := filelock.Acquire(ended, filepath.Join(dir, lock)); !errors.Is(err, context.Canceled) {
			t.Errorf("another package, while a test uses the server: %v, want that it waits", err)
		}
	})
	if held, err := filelock.Acquire(t.Context(), filepath.Join(dir, lock)); err != nil {
		t.Error(err)
	} else if err := held.Close(); err != nil {
		t.Error(err)
	}
	db, err := sql.Open("pgx", own.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var databases, slots, prepared int
	if err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM pg_database WHERE datname = $1), (SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1),
		(SELECT count(*) FROM pg_prepared_xacts WHERE database = $1)`, left).Scan(&databases, &slots, &prepared); err != nil || databases+slots+prepared != 0 {
		t.Errorf("%d databases, %d slots and %d prepared transactions are left, %v", databases, slots, prepared, err)
	}
}
