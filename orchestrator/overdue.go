package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Overdue counts the due entries of the sweeper's index, up to limit (1 to 1,000): orchestrations that are overdue and
// that no process has driven since, and obsolete entries. longest is how long the first of them has been due. Overdue
// reads one page of the index. Some entries are normal between two sweeps; entries that remain show that no sweeper
// runs.
func (r *Runtime) Overdue(ctx context.Context, limit int) (n int, longest time.Duration, err error) {
	now := r.config.Now()
	before := now.Add(-r.config.LateAfter)
	q := tables.Query{Partition: indexPartition, To: fmt.Sprintf("%016x", before.UnixMicro()+1), Select: []string{columnDue}, Limit: limit}
	page, err := r.config.Tables.Query(ctx, r.config.IndexTable, q)
	if err != nil {
		return 0, 0, fmt.Errorf("count overdue orchestrations: %w", err)
	}
	if len(page.Entities) > 0 {
		longest = now.Sub(page.Entities[0].Time(columnDue))
	}
	return len(page.Entities), longest, nil
}
