package catalog

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// markSlice is the number of marked orchestrations after which a call of Repair ends, at the end of a page.
const markSlice = 1000

// mark runs the third step of a pass. For each orchestration in a bucket that differs, it replaces each expected row
// by the same row with a mark, many in one transaction, which fails if a row does not exist. So it never recreates a
// row that is being deleted, and a thousand orchestrations cost 63 to 125 transactions instead of 6,000 reads.
func (c *Catalog) mark(ctx context.Context, p pass) (mended int, next string, err error) {
	next = p.next
	marked := 0
	for range readPages {
		there, more, err := c.listTruth(ctx, next)
		if err != nil {
			return mended, "", err
		}
		there = slices.DeleteFunc(there, func(s orchestrator.Summary) bool { return !p.sums.differ(s.ID) })
		n, err := c.markAll(ctx, p, there)
		mended += n
		if err != nil {
			return mended, "", err
		}
		marked += len(there)
		if next = more; next == "" || marked >= markSlice {
			break
		}
	}
	return mended, next, nil
}

// listTruth lists a page of the orchestrations themselves.
func (c *Catalog) listTruth(ctx context.Context, continuation string) ([]orchestrator.Summary, string, error) {
	return c.config.Runtime().List(ctx, orchestrator.Filter{}, maxPage, continuation)
}

// markAll marks the rows of orchestrations, and writes the rows of those that lack some.
func (c *Catalog) markAll(ctx context.Context, p pass, all []orchestrator.Summary) (mended int, err error) {
	for some := range batches(all) {
		ok, err := c.markRows(ctx, p, some...)
		if err != nil {
			return mended, err
		}
		if ok {
			continue
		}
		for _, s := range some {
			ok, err := c.markRows(ctx, p, s)
			if err == nil && !ok {
				mended++
				err = c.rewrite(ctx, s.ID)
			}
			if err != nil {
				return mended, err
			}
		}
	}
	return mended, nil
}

// batches divides orchestrations into parts whose rows fit a transaction.
func batches(all []orchestrator.Summary) iter.Seq[[]orchestrator.Summary] {
	return func(yield func([]orchestrator.Summary) bool) {
		first, rows := 0, 0
		for i, s := range all {
			n := len(entryFor(s).all())
			if rows+n > maxOps {
				if !yield(all[first:i]) {
					return
				}
				first, rows = i, 0
			}
			rows += n
		}
		if first < len(all) {
			yield(all[first:])
		}
	}
}

// markRows marks the rows of orchestrations. It returns false if a row does not exist; then none is marked.
func (c *Catalog) markRows(ctx context.Context, p pass, some ...orchestrator.Summary) (bool, error) {
	var ops []tables.Op
	for _, s := range some {
		e := entryFor(s)
		for _, name := range e.all() {
			row := e.row(name)
			row.Properties[columnPass] = p.mark()
			ops = append(ops, tables.Replace(row))
		}
	}
	err := c.config.Tables.Apply(ctx, c.config.Table, ops...)
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// rewrite writes the rows of an orchestration in its current state. They are not marked: if the orchestration changes
// at this moment, or is purged, the sweep finds the surplus rows.
func (c *Catalog) rewrite(ctx context.Context, id string) error {
	s, err := c.config.Runtime().Status(ctx, id)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.write(ctx, []change{{entry: entryFor(s)}})
}
