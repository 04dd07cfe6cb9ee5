package poller

import (
	"context"
	"fmt"
)

// freezeEnd fixes the end of a backfill, once.
func (t *tick) freezeEnd(ctx context.Context) error {
	end, err := t.config.Source.End(ctx)
	if err != nil {
		return fmt.Errorf("find the end of the source: %w", t.withLeaseCause(err))
	}
	t.doc, err = t.lease.write(func(d *Document) {
		d.Backfill = &BackfillState{End: end, FrozenAt: t.leases.clock.time(), Done: end.IsZero()}
	})
	if err != nil {
		return fmt.Errorf("freeze the end of the backfill: %w", err)
	}
	return nil
}

// upToEnd returns the rows of a batch up to the end of a backfill, and whether the end is reached. It includes rows
// whose order only the source knows.
func (t *tick) upToEnd(b *Batch) (rows []Row, ended bool) {
	if t.doc.Backfill == nil {
		return b.Rows, false
	}
	end := t.doc.Backfill.End
	if end.IsZero() {
		return nil, true
	}
	for i, row := range b.Rows {
		if order, ok := compare(row.Cursor, end); ok && order > 0 {
			return b.Rows[:i], true
		} else if ok && order == 0 {
			return b.Rows[:i+1], true
		}
	}
	return b.Rows, !b.More && b.HeldBack == ""
}

// finishBackfill records that a backfill is done.
func (t *tick) finishBackfill() error {
	var err error
	t.result.Done, t.result.Drained = true, true
	t.doc, err = t.lease.write(func(d *Document) { d.setBackfillDone(true) })
	if err != nil {
		return fmt.Errorf("finish the backfill: %w", err)
	}
	return nil
}
