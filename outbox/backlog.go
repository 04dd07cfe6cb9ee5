package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// MaxBacklogTenants bounds the tenants of a Backlog, MaxBacklogMessages the counted messages of each, and
	// MaxBacklogRows its rows.
	MaxBacklogTenants, MaxBacklogMessages, MaxBacklogRows = 100, 500, 200
	// backlogWidth is the number of tenants that are counted concurrently.
	backlogWidth = 8
)

// Backlog is the pending messages by tenant and destination, the largest counts first.
type Backlog struct {
	Rows []BacklogRow
	// More means that rows are missing: of other tenants, or dropped ones.
	More bool
}

// BacklogRow is the pending messages of one tenant for one destination.
type BacklogRow struct {
	TenantID string
	// Destination is "" for events that no route matches.
	Destination string
	// Waiting counts the pending messages, and Failed those of them that have failed before. AtLeast means that the tenant
	// has more pending messages than were counted.
	Waiting, Failed int
	AtLeast         bool
	// OldestAt is when the oldest counted message was added.
	OldestAt time.Time
}

// Backlog counts the pending messages of one tenant, or of all open tenants if tenant is "". The routes of this process
// determine the destinations. The cost is one query, and two for each tenant, regardless of the stored data. The errors
// are ErrInvalid and those of the stores.
func (d *Dispatcher) Backlog(ctx context.Context, tenant string) (Backlog, error) {
	if err := checkID("tenant id", tenant, false); err != nil {
		return Backlog{}, fmt.Errorf("count the backlog: %w", err)
	}
	tenants, more := []string{tenant}, false
	if tenant == "" {
		var err error
		if tenants, more, err = d.o.openTenants(ctx, MaxBacklogTenants); err != nil {
			return Backlog{}, fmt.Errorf("count the backlog: %w", err)
		}
	}
	out := Backlog{More: more}
	var mu sync.Mutex
	var errs []error
	var group errgroup.Group
	group.SetLimit(backlogWidth)
	for _, tenant := range tenants {
		group.Go(func() error {
			rows, err := d.backlogOf(ctx, tenant)
			mu.Lock()
			defer mu.Unlock()
			out.Rows = append(out.Rows, rows...)
			errs = append(errs, err)
			return nil
		})
	}
	_ = group.Wait() // the functions return none
	if err := errors.Join(errs...); err != nil {
		return Backlog{}, fmt.Errorf("count the backlog: %w", err)
	}
	slices.SortFunc(out.Rows, func(a, b BacklogRow) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), strings.Compare(a.TenantID, b.TenantID), strings.Compare(a.Destination, b.Destination))
	})
	if len(out.Rows) > MaxBacklogRows {
		out.Rows, out.More = out.Rows[:MaxBacklogRows], true
	}
	return out, nil
}

// openTenants returns the first tenants that may have pending messages; more reports others.
func (o *Outbox) openTenants(ctx context.Context, limit int) (tenants []string, more bool, err error) {
	for e, err := range tables.All(ctx, o.tables, o.table, tables.Query{Partition: openPartition, Limit: limit + 1}) {
		if err != nil {
			return nil, false, fmt.Errorf("list open tenants: %w", err)
		}
		if len(tenants) == limit {
			return tenants, true, nil
		}
		tenants = append(tenants, e.String("TenantId"))
	}
	return tenants, false, nil
}

// backlogOf counts the pending messages of one tenant.
func (d *Dispatcher) backlogOf(ctx context.Context, tenant string) ([]BacklogRow, error) {
	by := map[string]*BacklogRow{}
	counted, full := 0, false
	for _, prefix := range []string{pendingPrefix, waitingPrefix} {
		q := tables.Query{Partition: partition(tenant), From: prefix, To: endOf(prefix), Select: []string{"EventType", "CreatedAt", "RetryCount"}, Limit: MaxBacklogMessages + 1 - counted}
		for e, err := range tables.All(ctx, d.o.tables, d.o.table, q) {
			if err != nil {
				return nil, fmt.Errorf("tenant %s: %w", partition(tenant), err)
			}
			if full = counted == MaxBacklogMessages; full {
				break
			}
			counted++
			d.countRow(by, tenant, e)
		}
		if full {
			break
		}
	}
	var rows []BacklogRow
	for _, row := range by {
		row.AtLeast = full
		rows = append(rows, *row)
	}
	return rows, nil
}

// countRow counts a pending message for its destination.
func (d *Dispatcher) countRow(by map[string]*BacklogRow, tenant string, e tables.Entity) {
	to, _, err := d.router.Find(tenant, e.String("EventType"))
	if err != nil {
		to = "" // no route: it waits for one
	}
	row := by[to]
	if row == nil {
		row = &BacklogRow{TenantID: tenant, Destination: to, OldestAt: e.Time("CreatedAt")}
		by[to] = row
	}
	row.Waiting++
	if e.Int("RetryCount") > 0 {
		row.Failed++
	}
	if at := e.Time("CreatedAt"); at.Before(row.OldestAt) {
		row.OldestAt = at
	}
}
