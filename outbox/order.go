package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// An order key has at most one message under p-, its head; the others wait under w-, in the order of their sequence.
// Whoever adds one or ends the head also writes the key's row, so these exclude each other, and the row's ETag tells the
// one who came too late.

// orderKeyRow is the row of an order key. It is there for as long as the key has a head.
type orderKeyRow struct {
	entity tables.Entity
	found  bool
	// next is the next sequence.
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

// write is the operation that stores the row if nobody else has meanwhile.
func (r orderKeyRow) write() tables.Op {
	r.entity.Properties["Next"] = r.next
	if r.found {
		return tables.Replace(r.entity)
	}
	return tables.Insert(r.entity)
}

// enqueue gives the operations that put a pending message in line, beside that of its m- row. It sets the message's
// indexRow.
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

// dequeue gives the operations that let the next of an order key become its head, when the head leaves for good.
// promoted says whether there is a next one; without an order key there is nothing to do.
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
		// Its columns are moved as they are: what a newer version has written stays so.
		head := tables.Entity{
			Key:        tables.Key{Partition: e.Partition, Row: pendingRow(o.now(), idOf(e))},
			Properties: e.Properties,
		}
		return []tables.Op{tables.Delete(e.Key, e.ETag), tables.Insert(head), r.write()}, true, nil
	}
	if !r.found {
		return nil, false, nil // unreachable unless someone else has removed the row: nothing waits
	}
	return []tables.Op{tables.Delete(r.entity.Key, r.entity.ETag)}, false, nil
}
