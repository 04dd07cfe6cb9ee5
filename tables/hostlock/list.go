package hostlock

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Held is a lock with its holder.
type Held struct {
	Job, Node string
	// AcquiredAt is when the holder acquired the lock, Until when its lease ends.
	AcquiredAt, Until time.Time
}

// List returns the locks with a running lease. It scans the table, which has one row for each job that was ever locked.
func (l Locks) List(ctx context.Context) ([]Held, error) {
	var held []Held
	now := l.now()
	scan := tables.Scan{Row: lockRow, Select: []string{columnToken, columnNode, columnAcquired, columnUntil}}
	for row, err := range tables.ScanAll(ctx, l.Tables, l.table(), scan) {
		if err != nil {
			return nil, fmt.Errorf("list the locks of jobs: %w", err)
		}
		if row.String(columnToken) == "" || !now.Before(row.Time(columnUntil)) {
			continue
		}
		job, err := tables.UnescapeKey(row.Partition)
		if err != nil {
			return nil, fmt.Errorf("list the locks of jobs: lock %s: %w", row.Partition, err)
		}
		held = append(held, Held{Job: job, Node: row.String(columnNode), AcquiredAt: row.Time(columnAcquired), Until: row.Time(columnUntil)})
	}
	return held, nil
}
