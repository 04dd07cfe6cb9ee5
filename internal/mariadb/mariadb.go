// Package mariadb starts a MariaDB server for tests and measurements: an empty one, on a Unix socket in a temporary
// folder, that ends with Close and at the latest with this process. It owns no storage keys.
package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/daemon"
)

// User is the owner of everything on the server.
const User = "root"

// Server is a running MariaDB.
type Server struct {
	home     *daemon.Home
	process  *daemon.Process
	password string
}

// Start makes a data folder and starts a server on it. Data is not flushed to disk: a crash of the machine loses it.
// ctx bounds the start only. Start searches the programs in PATH and in the usual folders; without them it returns a
// daemon.MissingError.
func Start(ctx context.Context) (*Server, error) {
	usual := []string{"/usr/sbin", "/usr/bin", "/usr/local/mysql/bin"}
	install, installErr := daemon.Find([]string{"mariadb-install-db"}, usual)
	server, serverErr := daemon.Find([]string{"mariadbd"}, usual)
	if err := errors.Join(installErr, serverErr); err != nil {
		missing := &daemon.MissingError{Tool: "mariadb", Get: "install the package mariadb-server", Err: err}
		return nil, fmt.Errorf("start mariadb: %w", missing)
	}
	home, err := daemon.NewHome("maria", "mysql")
	if err != nil {
		return nil, fmt.Errorf("start mariadb: %w", err)
	}
	s := &Server{home: home, password: uuid.NewString()}
	if err := s.start(ctx, filepath.Join(install, "mariadb-install-db"), filepath.Join(server, "mariadbd")); err != nil {
		return nil, fmt.Errorf("start mariadb: %w", errors.Join(err, home.Remove()))
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, install, server string) error {
	data := filepath.Join(s.home.Dir, "data")
	if err := s.home.Run(ctx, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal",
		"--skip-test-db"); err != nil {
		return err
	}
	var err error
	s.process, err = s.home.Start(ctx, "ready for connections", server, "--no-defaults", "--datadir="+data,
		"--socket="+s.socket(), "--pid-file="+filepath.Join(s.home.Dir, "pid"), "--skip-networking", "--skip-log-bin",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=128M", "--max-allowed-packet=64M",
		"--character-set-server=utf8mb4", "--default-time-zone=+00:00")
	if err != nil {
		return err
	}
	if err := s.protect(ctx); err != nil {
		return errors.Join(err, s.process.Close())
	}
	return nil
}

// protect sets the owner's password.
func (s *Server) protect(ctx context.Context) error {
	db, err := sql.Open("mysql", s.DSNFor(User, "", ""))
	if err != nil {
		return err
	}
	// This package generates the password, so it needs no escaping.
	_, err = db.ExecContext(ctx, "ALTER USER 'root'@'localhost' IDENTIFIED BY '"+s.password+"'")
	return errors.Join(err, db.Close())
}

func (s *Server) socket() string { return filepath.Join(s.home.Dir, "sock") }

// DSN returns the DSN of a database of the server for its owner; "" selects no database.
func (s *Server) DSN(database string) string { return s.DSNFor(User, s.password, database) }

// DSNFor returns the DSN of a database for another user.
func (s *Server) DSNFor(user, password, database string) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = user, password, "unix", s.socket(), database
	return c.FormatDSN()
}

// Close ends the server and deletes its data.
func (s *Server) Close() error {
	return errors.Join(s.process.Close(), s.home.Remove())
}
