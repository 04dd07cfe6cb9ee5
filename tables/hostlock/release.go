package hostlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// ReleaseNode frees the locks of a node after its takeover, so that no process has to wait for the end of its leases,
// and returns their number. A node that lives on finds its locks lost at the next renewal, as if its leases had ended.
// ReleaseNode may be repeated and may run concurrently.
func (l Locks) ReleaseNode(ctx context.Context, node string) (int, error) {
	if node == "" {
		return 0, errors.New("release the locks of a node: it has no name")
	}
	freed := 0
	var errs []error
	held := tables.Scan{Row: lockRow, Where: map[string]any{columnNode: node}, Select: []string{columnToken}}
	for row, err := range tables.ScanAll(ctx, l.Tables, l.table(), held) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		if row.String(columnToken) == "" {
			continue
		}
		did, err := l.freeOf(ctx, row, node)
		if err != nil {
			errs = append(errs, err)
		} else if did {
			freed++
		}
	}
	if err := errors.Join(errs...); err != nil {
		return freed, fmt.Errorf("release the locks of node %s: %w", node, err)
	}
	return freed, nil
}

// freeOf frees a lock that the node still holds by the same token.
func (l Locks) freeOf(ctx context.Context, seen tables.Entity, node string) (did bool, err error) {
	job, err := tables.UnescapeKey(seen.Partition)
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", seen.Partition, err)
	}
	err = l.change(ctx, job, func(row *tables.Entity, now time.Time) error {
		if row.String(columnToken) != seen.String(columnToken) || row.String(columnNode) != node {
			return errDone // freed or acquired meanwhile, perhaps by an earlier try of this call
		}
		row.Properties[columnToken], row.Properties[columnReleased] = "", now
		did = true
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", job, err)
	}
	return did, nil
}
