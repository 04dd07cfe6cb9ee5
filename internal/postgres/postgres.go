// Package postgres starts a PostgreSQL server for tests and measurements: an empty one, on a Unix socket in a temporary
// folder, that ends with Close and at the latest with this process. Its programs are the installed ones, or else those
// from npm that the lock file in this folder pins. It owns no storage keys.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/daemon"
)

// User is the owner of everything on the server.
const User = "postgres"

// Server is a running PostgreSQL.
type Server struct {
	home     *daemon.Home
	process  *daemon.Process
	password string
}

// Start makes a cluster and starts it. Data is not flushed to disk: a crash of the machine loses it. ctx bounds the
// start only. Start searches the programs in PATH and in /usr/lib/postgresql, and then installs them from npm; without
// any for this machine it returns a daemon.MissingError.
func Start(ctx context.Context) (*Server, error) { return startFrom(ctx, programs) }

// startFrom starts a server with the programs in the folder that find returns for its home.
func startFrom(ctx context.Context, find func(context.Context, *daemon.Home) (bin string, err error)) (*Server, error) {
	home, err := daemon.NewHome("pg", "postgres")
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	s := &Server{home: home, password: uuid.NewString()}
	bin, err := find(ctx, home)
	if err == nil {
		err = s.start(ctx, bin)
	}
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", errors.Join(err, home.Remove()))
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, bin string) error {
	password, err := s.home.WriteFile("password", s.password)
	if err != nil {
		return err
	}
	data := filepath.Join(s.home.Dir, "data")
	if err := s.home.Run(ctx, filepath.Join(bin, "initdb"), "--pgdata", data, "--username", User, "--pwfile", password,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"); err != nil {
		return err
	}
	args := []string{"-D", data, "-k", s.home.Dir}
	for _, setting := range []string{"listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off",
		"shared_buffers=128MB", "max_connections=100", "max_prepared_transactions=32", "timezone=UTC", "wal_level=logical", "max_replication_slots=100"} {
		args = append(args, "-c", setting)
	}
	s.process, err = s.home.Start(ctx, "ready to accept connections", filepath.Join(bin, "postgres"), args...)
	return err
}

// Attach returns a server that another process started and owns, from the DSN of any of its databases. Its Close does
// nothing.
func Attach(dsn string) (*Server, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Query().Get("host") == "" {
		return nil, errors.New("attach to postgres: the DSN names no folder of a server") // the DSN holds a password
	}
	password, _ := u.User.Password()
	return &Server{home: &daemon.Home{Dir: u.Query().Get("host")}, password: password}, nil
}

// DSN returns the DSN of a database of the server for its owner.
func (s *Server) DSN(database string) string { return s.DSNFor(User, s.password, database) }

// DSNFor returns the DSN of a database for another user.
func (s *Server) DSNFor(user, password, database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Path: "/" + database,
		RawQuery: url.Values{"host": {s.home.Dir}, "sslmode": {"disable"}}.Encode()}
	return u.String()
}

// Close ends the server and deletes its data.
func (s *Server) Close() error {
	if s.process == nil {
		return nil
	}
	return errors.Join(s.process.Close(), s.home.Remove())
}
