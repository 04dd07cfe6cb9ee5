package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// An order key has at most one message with a p- row, its head. The others wait with w- rows, in the order of their
// sequence numbers. Adding a message and ending the head both write the row of the order key, so these operations
// exclude each other. The ETag of that row detects the later one.

// orderKeyRow is the row of an order key. It exists as long as the key has a head.
type orderKeyRow struct {
	entity tables.Entity
	found  bool
	// next is the next sequence number. The first head has none, and counts: while it is 1, no message has come after the
	// head.
	next int64
}

// orderKey returns the key of that row.
func orderKey(m *message) tables.Key {
	return tables.Key{Partition: partition(m.TenantID), Row: orderRow(m.OrderKey)}
}

// order reads the row of a message's order key.
func (o *Outbox) order(ctx context.Context, m *message) (orderKeyRow, error) {
	key := orderKey(m)
	e, err := o.tables.Get(ctx, o.table, key)
	if errors.Is(err, tables.ErrNotFound) {
		return orderKeyRow{entity: tables.Entity{Key: key, Properties: map[string]any{"OrderKey": m.OrderKey}}}, nil
	}
	if err != nil {
		return orderKeyRow{}, fmt.Errorf("read order key: %w", err)
	}
	return orderKeyRow{entity: e, found: true, next: e.Int("Next")}, nil
}

// write returns the operation that stores the row, which fails after a concurrent change.
func (r orderKeyRow) write() tables.Op {
	r.entity.Properties["Next"] = r.next
	if r.found {
		return tables.Replace(r.entity)
	}
	return tables.Insert(r.entity)
}

// enqueue returns the operations that add a pending message to the index, besides that on its m- row, and sets the
// message's indexRow. A message that is the head of its order key, or has none, gets the p- row of the ticket, if any.
// guess skips reading the row of the order key: most keys have no head, and with one, the operations fail.
func (o *Outbox) enqueue(ctx context.Context, m *message, t *ticket, guess bool) ([]tables.Op, error) {
	r := orderKeyRow{entity: tables.Entity{Key: orderKey(m), Properties: map[string]any{"OrderKey": m.OrderKey}}}
	if m.OrderKey != "" && !guess {
		var err error
		if r, err = o.order(ctx, m); err != nil {
			return nil, err
		}
	}
	var e tables.Entity
	switch {
	case r.found:
		m.indexRow = waitingRow(m.OrderKey, r.next, m.ID)
		e = m.pendingEntity(m.indexRow)
	case t != nil:
		m.indexRow = t.row
		e = m.pendingEntity(m.indexRow)
		e.Properties["ClaimedBy"], e.Properties["ClaimedUntil"] = t.as, t.until
	default:
		m.indexRow = pendingRow(m.NextAttemptAt, m.ID)
		e = m.pendingEntity(m.indexRow)
	}
	if m.OrderKey == "" {
		return []tables.Op{tables.Insert(e)}, nil
	}
	r.next++
	return []tables.Op{tables.Insert(e), r.write()}, nil
}

// dequeue returns the operations that make the next message of an order key its head, when the head leaves. promoted
// reports whether a next one exists. Without an order key it does nothing.
func (o *Outbox) dequeue(ctx context.Context, m *message) (ops []tables.Op, promoted bool, err error) {
	if m.OrderKey == "" {
		return nil, false, nil
	}
	r, err := o.order(ctx, m)
	if err != nil {
		return nil, false, err
	}
	return o.leave(ctx, m, r)
}

// leave is dequeue with the row of the order key.
func (o *Outbox) leave(ctx context.Context, m *message, r orderKeyRow) (ops []tables.Op, promoted bool, err error) {
	leave := tables.Delete(r.entity.Key, r.entity.ETag)
	if r.found && r.next == 1 {
		return []tables.Op{leave}, false, nil
	}
	prefix := waitingRange(m.OrderKey)
	for e, err := range tables.All(ctx, o.tables, o.table, tables.Query{Partition: partition(m.TenantID), From: prefix, To: endOf(prefix), Limit: 1}) {
		if err != nil {
			return nil, false, fmt.Errorf("read what waits for order key: %w", err)
		}
		// The columns are moved unchanged, so that those of a newer version are kept.
		head := tables.Entity{
			Key:        tables.Key{Partition: e.Partition, Row: pendingRow(o.now(), idOf(e))},
			Properties: e.Properties,
		}
		return []tables.Op{tables.Delete(e.Key, e.ETag), tables.Insert(head), r.write()}, true, nil
	}
	if !r.found {
		return nil, false, nil // the row was removed concurrently; then no message waits
	}
	return []tables.Op{leave}, false, nil
}
