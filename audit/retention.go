package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// emptyMonths is the number of consecutive months without entries after which the search for older ones ends.
const emptyMonths = 12

// Retention deletes up to limit rows of months that ended before a time. It returns the number of deleted rows and
// whether more may remain. It can be repeated, also after a crash.
func (l *Log) Retention(ctx context.Context, before time.Time, limit int) (removed int, more bool, err error) {
	for at, empty := firstOf(before).AddDate(0, -1, 0), 0; empty < emptyMonths; at, empty = at.AddDate(0, -1, 0), empty+1 {
		page, err := l.Tables.Query(ctx, l.table(), tables.Query{Partition: month(at), Limit: min(limit-removed, 100)})
		for err == nil && len(page.Entities) > 0 {
			empty = -1
			var ops []tables.Op
			for _, e := range page.Entities {
				ops = append(ops, tables.Delete(e.Key, ""))
			}
			if err = l.Tables.Apply(ctx, l.table(), ops...); err != nil && !errors.Is(err, tables.ErrNotFound) {
				break
			}
			if removed += len(ops); removed >= limit {
				return removed, true, nil
			}
			page, err = l.Tables.Query(ctx, l.table(), tables.Query{Partition: month(at), Limit: min(limit-removed, 100)})
		}
		if err != nil {
			return removed, false, fmt.Errorf("delete the audit log of %s: %w", month(at), err)
		}
	}
	return removed, false, nil
}
