package catalog

import (
	"context"
	"errors"
	"slices"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// markSlice is how many orchestrations one call of Repair marks.
	markSlice = 1000
	// mostRows is how many rows an orchestration has at most.
	mostRows = 6
)

// mark is the first step of a pass: it replaces each row that an orchestration implies by itself with the mark, many in one
// transaction, which fails if one of them is not there. So no row comes back that goes at the same time, and a thousand
// orchestrations cost 63 transactions and not 6,000 reads.
func (c *Catalog) mark(ctx context.Context, p pass) (mended int, next string, err error) {
	there, next, err := c.config.Runtime().List(ctx, orchestrator.Filter{}, markSlice, p.next)
	if err != nil {
		return 0, "", err
	}
	for some := range slices.Chunk(there, maxOps/mostRows) {
		ok, err := c.stamp(ctx, p, some...)
		if err != nil {
			return mended, "", err
		}
		if ok {
			continue
		}
		for _, s := range some {
			ok, err := c.stamp(ctx, p, s)
			if err == nil && !ok {
				mended++
				err = c.mend(ctx, s.ID)
			}
			if err != nil {
				return mended, "", err
			}
		}
	}
	return mended, next, nil
}

// stamp marks the rows of orchestrations; false says that one is not there, and none is marked.
func (c *Catalog) stamp(ctx context.Context, p pass, some ...orchestrator.Summary) (bool, error) {
	var ops []tables.Op
	for _, s := range some {
		e := entryFor(s)
		for _, name := range e.all() {
			row := e.row(name)
			row.Properties[columnPass] = p.stamp()
			ops = append(ops, tables.Replace(row))
		}
	}
	err := c.config.Tables.Apply(ctx, c.config.Table, ops...)
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// mend writes the rows of an orchestration, by what it is now. They are not marked: should it change at this moment, the
// second step finds what is too much. If it is gone, the second step finds its rows.
func (c *Catalog) mend(ctx context.Context, id string) error {
	s, err := c.config.Runtime().Status(ctx, id)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.write(ctx, []change{{entry: entryFor(s)}})
}
