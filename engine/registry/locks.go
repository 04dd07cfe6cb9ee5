package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Locks counts the locks of all instances at a time.
type Locks struct {
	// Held are the valid locks, and Expired those that expired before their release: the run died, or takes longer
	// than expected.
	Held, Expired int
	// LongestExpired is the time since the earliest expiry; 0 without one.
	LongestExpired time.Duration
	// More means that more instances exist than were read.
	More bool
}

// maxLockPages bounds the pages of instances that CountLocks reads, each of up to 1,000.
const maxLockPages = 10

// CountLocks reads the locks of up to 10,000 instances, in one query for each thousand; it does not read their
// documents.
func (r *Registry) CountLocks(ctx context.Context) (Locks, error) {
	var found Locks
	now := r.now()
	q := tables.Query{Partition: partition, Select: []string{columnLockJob, columnLockUntil}}
	for pages := 0; ; pages++ {
		if pages == maxLockPages {
			found.More = true
			return found, nil
		}
		page, err := r.store.Query(ctx, r.table, q)
		if errors.Is(err, tables.ErrNotFound) {
			return found, nil // the app has never run
		}
		if err != nil {
			return Locks{}, fmt.Errorf("count the locks of instances: %w", err)
		}
		for _, e := range page.Entities {
			found.add(Lock{JobID: e.String(columnLockJob), Until: e.Time(columnLockUntil)}, now)
		}
		if q.Continuation = page.Next; page.Next == "" {
			return found, nil
		}
	}
}

func (l *Locks) add(lock Lock, now time.Time) {
	switch {
	case lock.JobID == "":
	case lock.Held(now):
		l.Held++
	default:
		l.Expired++
		l.LongestExpired = max(l.LongestExpired, now.Sub(lock.Until))
	}
}
