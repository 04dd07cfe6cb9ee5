package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/tables"
)

// reservationTable has a row for each correlation id of a singleton engine: partition correlation id, row engine. It
// names the work of the correlation id.
const reservationTable = "engineReservations"

// reserveTries bounds the reads of a row that another process changes.
const reserveTries = 5

// reserve inserts the row of a correlation id unless it exists, and returns the work that the row names. known is a hint that
// the row exists. With edited, id replaces the work of a row for the same tenant and instance.
func (h *History) reserve(ctx context.Context, engine, correlationID string, id identity, known, edited bool) (holder identity, err error) {
	row := tables.Entity{Key: reservationKey(tables.EscapeKey(correlationID), tables.EscapeKey(engine)),
		Properties: map[string]any{"InstanceId": id.instance, tenantColumn: id.tenant, "Work": id.work}}
	for try := 0; try < reserveTries; try++ {
		var before tables.Entity
		if known {
			before, err = h.store.Get(ctx, reservationTable, row.Key)
		}
		if !known || errors.Is(err, tables.ErrNotFound) {
			err = h.store.Apply(ctx, reservationTable, tables.Insert(row))
			known = errors.Is(err, tables.ErrExists)
			if err == nil {
				return id, nil
			}
			if known {
				continue
			}
		}
		if err != nil {
			break
		}
		holder = identity{before.String(tenantColumn), before.String("InstanceId"), before.String("Work")}
		if !edited || id.same(holder) || !id.sameOwner(holder) {
			return holder, nil
		}
		row.ETag = before.ETag
		err = h.store.Apply(ctx, reservationTable, tables.Replace(row))
		if err == nil {
			return id, nil
		}
		if !errors.Is(err, tables.ErrPrecondition) && !errors.Is(err, tables.ErrNotFound) {
			break
		}
		row.ETag = ""
	}
	return identity{}, fmt.Errorf("reserve correlation id %s of engine %s: %w", correlationID, engine, err)
}

// release deletes the rows of the correlation ids whose entries a page of index rows refers to.
func (h *History) release(ctx context.Context, page []tables.Entity) error {
	released := map[tables.Key]bool{}
	for _, index := range page {
		id, _, ok := cutTimestamp(index.String(targetColumn))
		key := reservationKey(id, index.Partition)
		if !ok || released[key] {
			continue
		}
		released[key] = true
		if err := h.store.Apply(ctx, reservationTable, tables.Delete(key, "")); err != nil && !errors.Is(err, tables.ErrNotFound) {
			return fmt.Errorf("release correlation id %s of engine %s: %w", id, index.Partition, err)
		}
	}
	return nil
}

// reservationKey returns the key of a row, given the escaped correlation id and engine.
func reservationKey(correlationID, engine string) tables.Key {
	return tables.Key{Partition: correlationID, Row: engine}
}
