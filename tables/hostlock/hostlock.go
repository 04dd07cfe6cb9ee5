package hostlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/tables"
)

// DefaultTable is the name of the table of locks.
const DefaultTable = "hostLocks"

// The columns of a lock. Token is that of the holder, "" for a free lock.
const (
	lockRow        = "lock"
	columnToken    = "Token"
	columnNode     = "Node"
	columnAcquired = "AcquiredAtUtc"
	columnUntil    = "LeaseUntilUtc"
	columnReleased = "ReleasedAtUtc"
)

// tries bounds how often a change is decided again after a concurrent change of the row or a write of unknown outcome.
const tries = 5

var (
	// ErrHeld means that another process has the lock; the error names it and the end of its lease. Try again later, or
	// leave the job to that process.
	ErrHeld = errors.New("the lock is held")
	// ErrLost means that the lease has ended or that another process has the lock: stop the work under it.
	ErrLost = errors.New("the lock is lost")
)

// Locks are the locks of one table. Tables is required. Locks is safe for concurrent use.
type Locks struct {
	Tables tables.Store
	// Table defaults to DefaultTable.
	Table string
	// Node names this process, to operators and to ReleaseNode; default host name and process id. It is called with each
	// acquisition.
	Node func() string
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Lock is a lock that this process holds.
type Lock struct {
	// Job is the name of the locked job.
	Job string
	// Until is when the lease ends, unless it is renewed. The work has to end before that.
	Until time.Time

	token string
}

// CreateTable creates the table if it is missing.
func (l Locks) CreateTable(ctx context.Context) error {
	if err := l.Tables.CreateTable(ctx, l.table()); err != nil {
		return fmt.Errorf("create the table of host locks: %w", err)
	}
	return nil
}

// Acquire takes the lock of a job for the duration of the lease, or returns ErrHeld. A lock whose lease has ended is
// free.
func (l Locks) Acquire(ctx context.Context, job string, lease time.Duration) (Lock, error) {
	if job == "" || lease <= 0 {
		return Lock{}, fmt.Errorf("acquire lock %q: a job and a lease of more than 0 are required, not %v", job, lease)
	}
	held := Lock{Job: job, token: uuid.NewString()}
	err := l.change(ctx, job, func(row *tables.Entity, now time.Time) error {
		token, until := row.String(columnToken), row.Time(columnUntil)
		switch {
		case token == held.token && now.Before(held.Until):
			return errDone // an earlier try of this call succeeded, but its answer was lost
		case token != "" && token != held.token && now.Before(until):
			return fmt.Errorf("%w by %s until %s", ErrHeld, row.String(columnNode), until.Format(time.RFC3339))
		}
		held.Until = stored(now.Add(lease))
		row.Properties = map[string]any{columnToken: held.token, columnNode: l.node(), columnAcquired: now, columnUntil: held.Until}
		return nil
	})
	if err != nil {
		return Lock{}, fmt.Errorf("acquire lock %s: %w", job, err)
	}
	return held, nil
}

// Renew extends the lease of a lock to one lease from now. It returns ErrLost when the lock is no longer held. An ended
// lease that no other process has taken can still be renewed.
func (l Locks) Renew(ctx context.Context, held Lock, lease time.Duration) (Lock, error) {
	renewed := held
	err := l.change(ctx, held.Job, func(row *tables.Entity, now time.Time) error {
		if row.String(columnToken) != held.token {
			return lostTo(row)
		}
		if !renewed.Until.Equal(held.Until) && row.Time(columnUntil).Equal(renewed.Until) {
			return errDone // an earlier try of this call
		}
		renewed.Until = stored(now.Add(lease))
		row.Properties[columnUntil] = renewed.Until
		return nil
	})
	if err != nil {
		return held, fmt.Errorf("renew lock %s: %w", held.Job, err)
	}
	return renewed, nil
}

// Release frees a lock. When another process has the lock, Release returns ErrLost and changes nothing. It may be
// repeated.
func (l Locks) Release(ctx context.Context, held Lock) error {
	err := l.change(ctx, held.Job, func(row *tables.Entity, now time.Time) error {
		switch row.String(columnToken) {
		case "":
			return errDone
		case held.token:
			row.Properties[columnToken], row.Properties[columnReleased] = "", now
			return nil
		default:
			return lostTo(row)
		}
	})
	if err != nil {
		return fmt.Errorf("release lock %s: %w", held.Job, err)
	}
	return nil
}

func lostTo(row *tables.Entity) error {
	return fmt.Errorf("%w: %s had it last, until %s", ErrLost, row.String(columnNode), row.Time(columnUntil).Format(time.RFC3339))
}

// errDone means that the row is already as the change wants it.
var errDone = errors.New("done")

// change reads the row of a job, lets decide set its properties, and writes the row if it is unchanged. After a
// conflict or an unknown outcome it reads the row and decides again.
func (l Locks) change(ctx context.Context, job string, decide func(row *tables.Entity, now time.Time) error) error {
	var err error
	for range tries {
		row, found, readErr := l.read(ctx, job)
		if readErr != nil {
			return errors.Join(readErr, err)
		}
		if decided := decide(&row, stored(l.now())); errors.Is(decided, errDone) {
			return nil
		} else if decided != nil {
			return decided
		}
		write := tables.Insert(row)
		if found {
			write = tables.Replace(row)
		}
		err = l.Tables.Apply(ctx, l.table(), write)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, tables.ErrExists), errors.Is(err, tables.ErrPrecondition), errors.Is(err, tables.ErrNotFound),
			errors.Is(err, tables.ErrOutcomeUnknown):
		default:
			return err
		}
	}
	return err
}

func (l Locks) read(ctx context.Context, job string) (row tables.Entity, found bool, err error) {
	key := tables.Key{Partition: tables.EscapeKey(job), Row: lockRow}
	row, err = l.Tables.Get(ctx, l.table(), key)
	if errors.Is(err, tables.ErrNotFound) {
		return tables.Entity{Key: key}, false, nil
	}
	return row, err == nil, err
}

// stored returns a time as the table returns it.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func (l Locks) table() string { return cmp.Or(l.Table, DefaultTable) }

func (l Locks) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}

func (l Locks) node() string {
	if l.Node != nil {
		return l.Node()
	}
	host, _ := os.Hostname() // without a host name, the process id has to do
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
