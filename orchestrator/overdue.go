package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Overdue counts what the sweeper is to look at by now: orchestrations whose time has come and that nobody has driven since, or whose
// entry is not needed any more, up to limit (1 to 1,000). longest is for how long the first of them is due. It reads one page of the index; that
// some are there is usual between two sweeps, and that they stay says that nothing sweeps.
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
