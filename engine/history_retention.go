package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Retention deletes entries beyond their retention time (standard, section 4), in any status: up to limit of them,
// each with its index rows in one transaction. It reports whether more may exist; another call continues, also after
// a crash. When none are left, it adds missing rows to the index by instance. A message whose entries are deleted
// runs again if it is sent again.
func (h *History) Retention(ctx context.Context, r Retention, now time.Time, limit int) (removed int, more bool, err error) {
	lists := []string{string(StatusSucceeded), string(StatusFailed), supersededList}
	remove := h.remove
	if r.Singletons {
		remove = func(ctx context.Context, page []tables.Entity) error {
			if err := h.release(ctx, page); err != nil {
				return err
			}
			return h.remove(ctx, page)
		}
	}
	for _, list := range lists {
		n, left, err := r.removeEach(ctx, h.store, h.table, statusPrefix(list), now, limit-removed, remove)
		removed, more = removed+n, more || left
		if err != nil {
			return removed, true, err
		}
	}
	if more {
		return removed, true, nil
	}
	return removed, false, r.index(ctx, h.instances, lists, now)
}

// remove deletes the entries of one page of index rows: in one transaction, or one by one when another process has
// deleted some of them.
func (h *History) remove(ctx context.Context, page []tables.Entity) error {
	var all []tables.Op
	for _, index := range page {
		gone := rowsOfIndex(index)
		if len(all)+len(gone) > maxOps {
			if err := h.removeAll(ctx, all); err != nil {
				return err
			}
			all = nil
		}
		all = append(all, gone...)
	}
	return h.removeAll(ctx, all)
}

// rowsOfIndex returns operations that delete an entry, given its index row by status.
func rowsOfIndex(index tables.Entity) []tables.Op {
	key := func(row string) tables.Key { return tables.Key{Partition: index.Partition, Row: row} }
	ops := []tables.Op{tables.Delete(key(index.String(targetColumn)), ""), tables.Delete(index.Key, "")}
	if id := index.String(tenantColumn); id != "" {
		status, place := index.Row[len(indexMark):], index.Row[len(statusPrefix("?")):]
		ops = append(ops, tables.Delete(key(tenantPrefix(id, status)+place), ""))
	}
	if marked, _ := index.Properties[byInstanceColumn].(bool); marked {
		ops = append(ops, tables.Delete(byInstance(index).Key, ""))
	}
	return ops
}

func (h *History) removeAll(ctx context.Context, all []tables.Op) error {
	err := h.store.Apply(ctx, h.table, all...)
	if !errors.Is(err, tables.ErrNotFound) {
		return err
	}
	for _, op := range all {
		if err := h.store.Apply(ctx, h.table, op); err != nil && !errors.Is(err, tables.ErrNotFound) {
			return fmt.Errorf("delete %s: %w", op.Entity.Key, err)
		}
	}
	return nil
}
