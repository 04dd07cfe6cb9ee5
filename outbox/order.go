package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// An order key has at most one message with a p- row, its head. The others wait with w- rows, in the order of their sequence
// numbers. Whoever adds a message or ends the head also writes the row of the order key, so these operations exclude each other,
// and the ETag of that row tells the one that came too late.

// orderKeyRow is the row of an order key. It exists as long as the key has a head.
type orderKeyRow struct {
	entity tables.Entity
	found  bool
	// next is the next sequence number.
	next int64
}

func (o *Outbox) order(ctx context.Context, tenant, orderKey string) (orderKeyRow, error) {
	key := tables.Key{Partition: partition(tenant), Row: orderRow(orderKey)}
	e, err := o.tables.Get(ctx, o.table, key)
	if errors.Is(err, tables.ErrNotFound) {
		return orderKeyRow{entity: tables.Entity{Key: key, Properties: map[string]any{"OrderKey": orderKey}}}, nil
	}
	if err != nil {
		return orderKeyRow{}, fmt.Errorf("read order key: %w", err)
	}
	return orderKeyRow{entity: e, found: true, next: e.Int("Next")}, nil
}

// write returns the operation that stores the row, which fails if somebody else has changed it.
func (r orderKeyRow) write() tables.Op {
	r.entity.Properties["Next"] = r.next
	if r.found {
		return tables.Replace(r.entity)
	}
	return tables.Insert(r.entity)
}

// enqueue returns the operations that add a pending message to the index, besides that on its m- row. It sets the
// message's indexRow.
func (o *Outbox) enqueue(ctx context.Context, m *message) ([]tables.Op, error) {
	m.indexRow = pendingRow(m.NextAttemptAt, m.ID)
	if m.OrderKey == "" {
		return []tables.Op{tables.Insert(m.pendingEntity(m.indexRow))}, nil
	}
	r, err := o.order(ctx, m.TenantID, m.OrderKey)
	if err != nil {
		return nil, err
	}
	if r.found {
		m.indexRow = waitingRow(m.OrderKey, r.next, m.ID)
	}
	r.next++
	return []tables.Op{tables.Insert(m.pendingEntity(m.indexRow)), r.write()}, nil
}

// dequeue returns the operations that make the next message of an order key its head, when the head leaves. promoted
// says whether there is a next one. Without an order key there is nothing to do.
func (o *Outbox) dequeue(ctx context.Context, m *message) (ops []tables.Op, promoted bool, err error) {
	if m.OrderKey == "" {
		return nil, false, nil
	}
	r, err := o.order(ctx, m.TenantID, m.OrderKey)
	if err != nil {
		return nil, false, err
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
		return nil, false, nil // only if somebody else has removed the row; then nothing waits
	}
	return []tables.Op{tables.Delete(r.entity.Key, r.entity.ETag)}, false, nil
}
