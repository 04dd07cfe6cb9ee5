package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// indexedColumn of a tenant's row means that all of its rows from before idempotency keys have index rows.
	indexedColumn = "Indexed"
	// opensColumn of a tenant's row means that it has had a row under "~open" since its first message, or got one later. A
	// tenant of an older version has none, even with pending messages.
	opensColumn = "Opens"
)

// tenants caches which tenants have a row under "~tenants", and whether it is indexed.
type tenants struct {
	known sync.Map
}

func tenantKey(tenant string) tables.Key {
	return tables.Key{Partition: tenantsPartition, Row: partition(tenant)}
}

// register makes sure, once per process, that a tenant has its row, and reports whether it is indexed. It comes before
// the first message, so that a crash leaves no message of an unlisted tenant.
func (o *Outbox) register(ctx context.Context, tenant string) (indexed bool, err error) {
	if known, ok := o.tenants.known.Load(tenant); ok {
		indexed, _ = known.(bool)
		return indexed, nil
	}
	key := tenantKey(tenant)
	row, err := o.tables.Get(ctx, o.table, key)
	if errors.Is(err, tables.ErrNotFound) {
		row, err = o.insertTenant(ctx, tenant, key)
	}
	if err != nil {
		return false, fmt.Errorf("register tenant %s: %w", key.Row, err)
	}
	indexed = row.Bool(indexedColumn)
	o.tenants.known.Store(tenant, indexed)
	return indexed, nil
}

func (o *Outbox) insertTenant(ctx context.Context, tenant string, key tables.Key) (row tables.Entity, err error) {
	// A partition without messages has no rows from before idempotency keys either.
	page, err := o.tables.Query(ctx, o.table, tables.Query{
		Partition: partition(tenant), From: messagePrefix, To: endOf(messagePrefix), Limit: 1, Select: []string{"Id"},
	})
	if err != nil {
		return row, err
	}
	indexed := len(page.Entities) == 0 && page.Next == ""
	row = tenantRow(tenant, indexed)
	err = o.tables.Apply(ctx, o.table, tables.Insert(row))
	if errors.Is(err, tables.ErrExists) {
		return o.tables.Get(ctx, o.table, key) // the tenant counts as registered only if the row can be read
	}
	return row, err
}

func tenantRow(tenant string, indexed bool) tables.Entity {
	return tables.Entity{Key: tenantKey(tenant), Properties: map[string]any{"TenantId": tenant, indexedColumn: indexed, opensColumn: true}}
}

// markIndexed records that the backfill of a tenant is complete.
func (o *Outbox) markIndexed(ctx context.Context, tenant string) error {
	row := tenantRow(tenant, true)
	err := o.markOpen(ctx, tenant, true) // an older version may have left pending messages
	if err == nil {
		err = o.tables.Apply(ctx, o.table, tables.Upsert(row))
	}
	if err != nil {
		return fmt.Errorf("mark tenant %s: %w", row.Row, err)
	}
	o.tenants.known.Store(tenant, true)
	return nil
}

// knownTenant is one row under "~tenants".
type knownTenant struct {
	id, etag string
	// opens means that its messages are announced under "~open".
	indexed, opens bool
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
		list = append(list, knownTenant{id: e.String("TenantId"), etag: e.ETag, indexed: e.Bool(indexedColumn), opens: e.Bool(opensColumn)})
	}
	return list, "", nil
}
