package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/vibedata/roundhouse/tables"
)

// indexedColumn of a tenant's row says that all of its rows from before idempotency keys have index rows.
const indexedColumn = "Indexed"

// tenants caches which tenants have a row under "~tenants". The sweep reads these rows.
type tenants struct {
	known sync.Map
}

func tenantKey(tenant string) tables.Key {
	return tables.Key{Partition: tenantsPartition, Row: partition(tenant)}
}

// register makes sure, once in a process, that a tenant has its row. It comes before the first message, so that a crash
// leaves no message whose tenant the sweep does not know.
func (o *Outbox) register(ctx context.Context, tenant string) error {
	if _, ok := o.tenants.known.Load(tenant); ok {
		return nil
	}
	key := tenantKey(tenant)
	_, err := o.tables.Get(ctx, o.table, key)
	if errors.Is(err, tables.ErrNotFound) {
		err = o.insertTenant(ctx, tenant, key)
	}
	if err != nil {
		return fmt.Errorf("register tenant %s: %w", key.Row, err)
	}
	o.tenants.known.Store(tenant, true)
	return nil
}

func (o *Outbox) insertTenant(ctx context.Context, tenant string, key tables.Key) error {
	// A partition without messages has no rows from before idempotency keys either.
	page, err := o.tables.Query(ctx, o.table, tables.Query{
		Partition: partition(tenant), From: messagePrefix, To: endOf(messagePrefix), Limit: 1, Select: []string{"Id"},
	})
	if err != nil {
		return err
	}
	indexed := len(page.Entities) == 0 && page.Next == ""
	row := tables.Entity{Key: key, Properties: map[string]any{"TenantId": tenant, indexedColumn: indexed}}
	err = o.tables.Apply(ctx, o.table, tables.Insert(row))
	if errors.Is(err, tables.ErrExists) {
		_, err = o.tables.Get(ctx, o.table, key) // the tenant counts as registered only if the row can be read
	}
	return err
}

// markIndexed records that the backfill of a tenant is complete.
func (o *Outbox) markIndexed(ctx context.Context, tenant string) error {
	row := tables.Entity{Key: tenantKey(tenant), Properties: map[string]any{"TenantId": tenant, indexedColumn: true}}
	if err := o.tables.Apply(ctx, o.table, tables.Upsert(row)); err != nil {
		return fmt.Errorf("mark tenant %s: %w", row.Row, err)
	}
	return nil
}

// knownTenant is one row under "~tenants".
type knownTenant struct {
	id      string
	indexed bool
}

// listTenants reads one page of tenants, from the row from on, in the order of their rows. next is the row that
// continues the list; "" at its end.
func (o *Outbox) listTenants(ctx context.Context, from string, limit int) (list []knownTenant, next string, err error) {
	q := tables.Query{Partition: tenantsPartition, From: from, Limit: limit + 1}
	for e, err := range tables.All(ctx, o.tables, o.table, q) {
		if err != nil {
			return nil, "", fmt.Errorf("list tenants: %w", err)
		}
		if len(list) == limit {
			return list, e.Row, nil
		}
		list = append(list, knownTenant{id: e.String("TenantId"), indexed: e.Bool(indexedColumn)})
	}
	return list, "", nil
}
