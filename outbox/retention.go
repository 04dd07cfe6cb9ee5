package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// retentionChunk is the number of messages that one transaction deletes: each has two rows.
const retentionChunk = 50

// Retention deletes messages that were processed or skipped before a time, with their payloads: at most limit (1 to
// MaxLimit; 0 means DefaultLimit). more means that others may remain: call it again. Dead messages are kept.
func (a *Admin) Retention(ctx context.Context, before time.Time, limit int) (removed int, more bool, err error) {
	if limit == 0 {
		limit = DefaultLimit
	}
	if limit < 1 || limit > MaxLimit {
		return 0, false, fmt.Errorf("retention: %w: limit %d: use 1 to %d", ErrInvalid, limit, MaxLimit)
	}
	for from, more := "", true; more; more = from != "" {
		list, next, err := a.o.listTenants(ctx, from, sweepWidth)
		if err != nil {
			return removed, true, fmt.Errorf("retention: %w", err)
		}
		for _, t := range list {
			n, rest, err := a.retainTenant(ctx, t.id, before, limit-removed)
			removed += n
			if err != nil || rest || removed == limit {
				return removed, true, err
			}
		}
		from = next
	}
	return removed, false, nil
}

// retainTenant deletes the old messages of a tenant.
func (a *Admin) retainTenant(ctx context.Context, tenant string, before time.Time, limit int) (removed int, more bool, err error) {
	q := tables.Query{
		Partition: partition(tenant),
		// Newer messages, and those of that very microsecond, come before it.
		From:   processedPrefix + inverted(before.Add(-time.Microsecond)),
		To:     endOf(processedPrefix),
		Limit:  limit,
		Select: []string{"Id", "PayloadBlob"},
	}
	page, err := a.o.tables.Query(ctx, a.o.table, q)
	if err != nil {
		return 0, true, fmt.Errorf("retention of tenant %s: %w", q.Partition, err)
	}
	for rows := page.Entities; len(rows) > 0; {
		n := min(len(rows), retentionChunk)
		done, err := a.remove(ctx, rows[:n])
		removed += done
		if err != nil {
			return removed, true, fmt.Errorf("retention of tenant %s: %w", q.Partition, err)
		}
		rows = rows[n:]
	}
	return removed, page.Next != "", nil
}

// remove deletes messages by their x- rows. Payloads are deleted first, because afterwards no row would name them.
func (a *Admin) remove(ctx context.Context, rows []tables.Entity) (removed int, err error) {
	var ops []tables.Op
	for _, e := range rows {
		if blob := e.String("PayloadBlob"); blob != "" {
			if err := a.o.blobs.Delete(ctx, a.o.container, blob); err != nil {
				return 0, err
			}
		}
		// A message that is replayed meanwhile has no x- row, and stays.
		ops = append(ops, tables.Delete(e.Key, e.ETag), tables.Delete(tables.Key{Partition: e.Partition, Row: messageRow(idOf(e))}, ""))
	}
	err = a.o.tables.Apply(ctx, a.o.table, ops...)
	switch {
	case err == nil:
		return len(rows), nil
	case !needsReread(err):
		return 0, err
	case len(rows) == 1:
		// The message is gone, or the next call finds it again.
		return 0, nil
	}
	for _, e := range rows {
		n, err := a.remove(ctx, []tables.Entity{e})
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}
