package sqlsource

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

const (
	// listTries is how often a look reads InnoDB's list of transactions until that is new, and listPause the minimum pause
	// between two reads: the server renews the list only if no client has read it for 100 ms.
	listTries = 6
	listPause = 110 * time.Millisecond
)

// InnoDB shows a transaction from its first access on. NOW() is frozen at the start of the statement, which may have
// run for long before that: a slow expression, a stored function. So a look reads the running statements, and then the
// open transactions. A transaction that the last look did not see was started by a statement that ran at that look, or
// by a later one. That statement's start is the earliest possible NOW(), and it is kept until the transaction has
// ended. For transactions that the first look finds, the start is unknown, so no row is returned before they have
// ended.

// transaction identifies an open transaction: a connection has one at a time, and those without a connection are
// prepared ones.
type transaction struct {
	connection string
	started    string // as in InnoDB, in whole seconds
}

// mysqlLook is the result of a look.
type mysqlLook struct {
	// now is the server's clock before everything else.
	now time.Time
	// statements are the connections with running statements, with their start times.
	statements map[string]time.Time
	// earliest are the open transactions, with the earliest possible time of their NOW(); zero when unknown.
	earliest map[transaction]time.Time
}

// lookMySQL reads the statements before the list of transactions. The list may be old, so a marker transaction is
// opened in between: a list without it is not used. The connection is a new one, because an old list may have the
// marker transaction of an earlier look. A transaction that a slow statement has started since would be in neither.
func lookMySQL(ctx context.Context, s *Source) (seen sighting, err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return sighting{}, err
	}
	defer func() {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes the connection
	}()
	look, err := s.statementsMySQL(ctx, conn)
	if err != nil {
		return sighting{}, err
	}
	if _, err := conn.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"); err != nil {
		return sighting{}, err
	}
	defer func() {
		_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		err = errors.Join(err, rollback)
	}()
	var open []transaction
	current := false
	for try := 0; !current && try < listTries; try++ {
		if try > 0 {
			if err := pauseFor(ctx, listPause+rand.N(listPause)); err != nil {
				return sighting{}, err
			}
		}
		if open, current, err = s.transactionsMySQL(ctx, conn); err != nil {
			return sighting{}, err
		}
	}
	if !current {
		return sighting{now: look.now, unknown: true, holder: "the server's list of transactions is old: something else reads it all the time"}, nil
	}
	look.earliest = map[transaction]time.Time{}
	for _, t := range open {
		look.earliest[t] = s.settled.mysql.since(t)
	}
	s.settled.mysql = look
	return look.sighting(), nil
}

// since returns the earliest possible NOW() of a transaction that a later look finds; zero when unknown.
func (l *mysqlLook) since(t transaction) time.Time {
	if l == nil {
		return time.Time{}
	}
	if t.connection == "0" {
		return l.sincePrepared(t)
	}
	if known, ok := l.earliest[t]; ok {
		return known
	}
	if started, ran := l.statements[t.connection]; ran {
		return started
	}
	return l.now
}

// sincePrepared returns that of a prepared transaction, which any connection may have made: it was open at the look, or
// a statement that ran then has started it, or a later one. Several prepared ones of one second have one name, so all
// of that second count.
func (l *mysqlLook) sincePrepared(t transaction) time.Time {
	earliest := l.now
	for _, started := range l.statements {
		earliest = earlier(earliest, started)
	}
	for other, known := range l.earliest {
		if other.started == t.started {
			earliest = earlier(earliest, known) // zero (unknown) is before all others
		}
	}
	return earliest
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// sighting returns the oldest transaction of the look.
func (l *mysqlLook) sighting() sighting {
	seen := sighting{now: l.now}
	for t, earliest := range l.earliest {
		who := "connection " + t.connection
		if t.connection == "0" {
			who = "a prepared transaction of " + t.started
		}
		if earliest.IsZero() {
			return sighting{now: l.now, unknown: true, holder: who + " had a transaction open already at the first look: nobody can tell since when"}
		}
		seen.older(earliest, who)
	}
	for connection, started := range l.statements {
		seen.older(started, "a statement of connection "+connection)
	}
	return seen
}

// older keeps the older of two transactions.
func (g *sighting) older(since time.Time, holder string) {
	if g.oldest.IsZero() || since.Before(g.oldest) || since.Equal(g.oldest) && cmp.Less(holder, g.holder) {
		g.oldest, g.holder = since, holder
	}
}

// readersMySQL returns the condition that excludes the configured readers.
func (s *Source) readersMySQL() (condition string, args []any) {
	for _, r := range s.config.Readers {
		condition += " AND COALESCE(p.user, '') <> ?"
		args = append(args, r)
	}
	return condition, args
}

// statementsMySQL reads the running statements. MySQL has their times in whole seconds, MariaDB in milliseconds.
// Incoming replication is not a writer of this server.
func (s *Source) statementsMySQL(ctx context.Context, conn *sql.Conn) (*mysqlLook, error) {
	v, _, err := first(ctx, conn, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED), @@global.read_only, VERSION()")
	if err != nil {
		return nil, err
	}
	if v[1].String != "0" && v[1].String != "OFF" {
		return nil, errReadOnly
	}
	look := &mysqlLook{now: microseconds(v[0].String), statements: map[string]time.Time{}}
	age := "(p.time + 1) * 1000000"
	if strings.Contains(v[2].String, "MariaDB") {
		age = "p.time_ms * 1000"
	}
	condition, args := s.readersMySQL()
	err = eachRow(ctx, conn, "SELECT p.id, COALESCE(CAST("+age+` AS SIGNED), 0) FROM information_schema.processlist p WHERE p.id <> CONNECTION_ID()
		AND p.command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID', 'Slave_IO', 'Slave_SQL', 'Slave_worker')`+condition, args, func(row []string) error {
		since, err := strconv.ParseInt(row[1], 10, 64)
		look.statements[row[0]] = look.now.Add(-time.Duration(max(since, 0)) * time.Microsecond)
		return err
	})
	return look, err
}

// pauseFor waits, or returns the cause of the end of ctx.
func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// transactionsMySQL reads the transactions that may write. current means that the list has the connection's own.
func (s *Source) transactionsMySQL(ctx context.Context, conn *sql.Conn) (open []transaction, current bool, err error) {
	condition, args := s.readersMySQL()
	err = eachRow(ctx, conn, `SELECT t.trx_mysql_thread_id, CAST(t.trx_started AS CHAR), t.trx_mysql_thread_id = CONNECTION_ID()
		FROM information_schema.innodb_trx t LEFT JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
		WHERE t.trx_mysql_thread_id = CONNECTION_ID() OR NOT t.trx_is_read_only`+condition, args, func(row []string) error {
		if row[2] != "1" {
			open = append(open, transaction{row[0], row[1]})
			return nil
		}
		current = true
		return nil
	})
	return open, current, err
}
