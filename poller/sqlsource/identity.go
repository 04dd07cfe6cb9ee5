package sqlsource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/vibedata/roundhouse/poller"
)

// address returns the address of a database in the connection string: host, port and name, for SQLite the path. It has
// no user, no password and no options. It is "" for a string that the driver cannot read, and for one whose parts may
// hold a part of a password.
func (c Config) address() string {
	d, known := dialects()[c.Dialect]
	if !known || c.DSN == "" {
		return ""
	}
	return d.address(c.DSN)
}

// DatabaseID returns the database's own id, "" when the database does not have or show one.
func (s *Source) DatabaseID(ctx context.Context) (string, error) {
	if s.dialect.databaseID == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	id, err := s.dialect.databaseID(ctx, s.db)
	return id, s.fail("identify the database of", err)
}

// plain matches hosts, folders of sockets and names of databases. If a driver takes a part of a password for one of
// them, because an @ in it is not escaped, the part has the @.
var plain = regexp.MustCompile(`^[^@\pC]*$`)

// joined returns an address, "" when a part is not plain.
func joined(hosts []string, database string) string {
	for _, part := range append(slices.Clone(hosts), database) {
		if !plain.MatchString(part) {
			return ""
		}
	}
	return strings.Join(hosts, ",") + "/" + database
}

// PostgresAddress returns the address of the database of a connection string of PostgreSQL: its hosts, ports and name.
func PostgresAddress(dsn string) string {
	if dsn == "" { // the driver would read that as the defaults of the environment
		return ""
	}
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return ""
	}
	hosts := []string{hostPort(c.Host, c.Port)}
	for _, f := range c.Fallbacks { // one per host, and another one without TLS
		if host := hostPort(f.Host, f.Port); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	name := c.Database
	if name == "" {
		name = c.User
	}
	return joined(hosts, name)
}

func hostPort(host string, port uint16) string {
	return net.JoinHostPort(strings.ToLower(host), strconv.Itoa(int(port)))
}

// PostgresDatabaseID returns the id of a session's database: the system identifier of the cluster, which physical
// replicas share and initdb generates, and the number of the database in it, which CREATE DATABASE assigns. It is ""
// where the server does not show them.
func PostgresDatabaseID(ctx context.Context, q querier) (string, error) {
	v, found, err := first(ctx, q, `SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' || oid::text FROM pg_database WHERE datname = current_database()`)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (strings.HasPrefix(refused.Code, "42") || strings.HasPrefix(refused.Code, "0A")) {
		return "", nil // no right to the function, or another product without it
	}
	if err != nil || !found {
		return "", err
	}
	return v[0].String, nil
}

func addressMySQL(dsn string) string {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return ""
	}
	return joined([]string{strings.ToLower(c.Addr)}, c.DBName)
}

// databaseIDMySQL returns the id of the server, which its replicas do not share, and the name of the database. MariaDB
// has none.
func databaseIDMySQL(ctx context.Context, q querier) (string, error) {
	v, found, err := first(ctx, q, "SHOW GLOBAL VARIABLES LIKE 'server_uuid'")
	if err != nil || !found || v[1].String == "" {
		return "", err
	}
	name, _, err := first(ctx, q, "SELECT DATABASE()")
	if err != nil {
		return "", err
	}
	return v[1].String + "/" + name[0].String, nil
}

func addressSQLServer(dsn string) string {
	c, err := msdsn.Parse(dsn)
	if err != nil {
		return ""
	}
	host := strings.ToLower(c.Host)
	if c.Instance != "" {
		host += "/" + strings.ToLower(c.Instance)
	}
	if c.Port != 0 {
		host = net.JoinHostPort(host, strconv.FormatUint(c.Port, 10))
	}
	return joined([]string{host}, c.Database)
}

// addressSQLite returns the path of the file, or "" for a URL of another database.
func addressSQLite(dsn string) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(dsn, "file:"), "?")
	if strings.Contains(path, "://") {
		return ""
	}
	return filepath.Clean(path)
}

// present refuses a position with no row of the table at or after it. The database is another one, or was restored, and
// rows would be skipped until it has grown beyond the position. A number that the table itself has generated proves
// that the rows were deleted.
func (s *Source) present(ctx context.Context, sh *shape, at poller.Cursor) error {
	if at.Value == "" || s.config.ExpectDeletes {
		return nil
	}
	place, err := s.compare(sh, at, ">=")
	if err != nil {
		return err
	}
	text, args, err := s.build(query{columns: []string{"1"}, where: []func(*statement){place}, limit: 1})
	if err != nil {
		return err
	}
	if _, found, err := first(ctx, s.db, text, args...); err != nil || found {
		return err
	}
	c := sh.columns[sh.cursor]
	if c.class == classInteger && s.dialect.frontier != nil {
		if given, err := s.dialect.frontier(ctx, s, c); err != nil || given != "" && !less(given, at.Value, c.class) {
			return err
		}
	}
	end, reset, err := s.last(ctx, sh)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: the place is at %s, but the table ends at %s: if another or a restored database is behind the connection, run `roundhouse poller reset-to-beginning POLLER`%s; "+
		"if rows were deleted, the next change ends this error, and expectDeletes in the source prevents it", ErrWentBack, at, end, reset)
}

// last returns the end of the table without its conditions, and the command that resets a poller to it.
func (s *Source) last(ctx context.Context, sh *shape) (end poller.Cursor, reset string, err error) {
	place, err := s.behind(sh, poller.Cursor{})
	if err != nil {
		return end, "", err
	}
	q := query{columns: s.expressions(sh), where: []func(*statement){place}, order: s.order(sh, " DESC"), limit: 1}
	b, _, err := s.read(ctx, sh, q, upper{}, 1, 0)
	if err != nil || len(b.Rows) == 0 {
		return end, "", err
	}
	end = b.Rows[0].Cursor
	reset = end.Value
	if len(end.Tiebreaker) > 0 {
		reset += fmt.Sprintf(" '%s'", end.Tiebreaker)
	}
	return end, ", or `roundhouse poller reset-to-cursor POLLER " + reset + "` to continue behind its end", nil
}
