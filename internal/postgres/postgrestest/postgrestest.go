// Package postgrestest gives the tests of a package one PostgreSQL: that of the lane (scripts/lane), or else their own,
// started by the first test that needs it and stopped after the last.
//
//	var server postgrestest.Shared
//
//	func TestMain(m *testing.M) { testenv.Main(m, server.Close) }
//
//	func TestSomething(t *testing.T) { name, dsn := server.Database(t) ... }
//
// Each test has its own database, and no other package's tests use the server meanwhile: PostgreSQL's data on the
// oldest open transaction, slots and roles covers all databases of a server. It owns no storage keys.
package postgrestest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that makes databases

	"github.com/vibedata/roundhouse/internal/filelock"
	"github.com/vibedata/roundhouse/internal/postgres"
	"github.com/vibedata/roundhouse/internal/testenv"
)

const (
	// address is the file of a lane's folder that holds the DSN of its server.
	address = "postgres"
	// lock is the file that a package locks while its tests use the server.
	lock = "postgres.lock"
)

// Serve starts the server of a lane and writes its address to the lane's folder, testenv.Servers for the tests.
func Serve(ctx context.Context, dir string) (stop func() error, err error) {
	s, err := postgres.Start(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, address), []byte(s.DSN(postgres.User)), 0o600); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s.Close, nil
}

// Shared is one PostgreSQL for the tests of one package. The zero value is ready to use.
type Shared struct {
	mu     sync.Mutex
	server *postgres.Server
	err    error
	users  int
	held   *os.File // the lane's lock, while users > 0
}

// Server returns the server for the duration of a test. Without PostgreSQL on this machine, the test is skipped.
func (s *Shared) Server(t testing.TB) *postgres.Server {
	t.Helper()
	testenv.Long(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil && s.err == nil {
		s.server, s.err = start()
	}
	testenv.Started(t, s.err)
	if dir := os.Getenv(testenv.Servers); s.users == 0 && dir != "" {
		held, err := filelock.Acquire(testenv.Context(t), filepath.Join(dir, lock))
		if err != nil {
			t.Fatal(err)
		}
		s.held = held
	}
	s.users++
	t.Cleanup(func() {
		if err := s.release(); err != nil {
			t.Error(err)
		}
	})
	return s.server
}

// Database makes an empty database for a test and drops it afterwards, with its slots and its prepared transactions.
func (s *Shared) Database(t testing.TB) (name, dsn string) {
	t.Helper()
	server := s.Server(t)
	name = "t" + strings.ReplaceAll(uuid.NewString(), "-", "")
	own, dsn := server.DSN(postgres.User), server.DSN(name)
	if err := execute(own, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(clear(dsn), execute(own, "DROP DATABASE "+name+" WITH (FORCE)")); err != nil {
			t.Errorf("drop the database of the test: %v", err)
		}
	})
	return name, dsn
}

// clear ends everything that would keep a database from being dropped, or would block the pollers of the next package.
func clear(dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for query, statement := range map[string]string{
		"SELECT gid FROM pg_prepared_xacts WHERE database = current_database()":          "ROLLBACK PREPARED '%s'",
		"SELECT slot_name FROM pg_replication_slots WHERE database = current_database()": "SELECT pg_drop_replication_slot('%s')",
	} {
		names, err := texts(db, query)
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, err := db.ExecContext(context.Background(), fmt.Sprintf(statement, strings.ReplaceAll(name, "'", "''"))); err != nil {
				return err
			}
		}
	}
	return nil
}

// texts reads the only column of a query.
func texts(db *sql.DB, query string) (all []string, err error) {
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}

func execute(dsn, statement string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(context.Background(), statement)
	return errors.Join(err, db.Close())
}

// Close stops a server that this package started. It is for testenv.Main.
func (s *Shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	return s.server.Close()
}

func (s *Shared) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 || s.held == nil {
		return nil
	}
	held := s.held
	s.held = nil
	return held.Close()
}

// start attaches to the server of the lane, or starts one.
func start() (*postgres.Server, error) {
	dir := os.Getenv(testenv.Servers)
	if dir == "" {
		return postgres.Start(context.Background())
	}
	dsn, err := os.ReadFile(filepath.Join(dir, address))
	if errors.Is(err, os.ErrNotExist) { // the lane could not start one
		return postgres.Start(context.Background())
	}
	if err != nil {
		return nil, fmt.Errorf("find the lane's postgres: %w", err)
	}
	return postgres.Attach(string(dsn))
}
