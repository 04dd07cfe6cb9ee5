package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/tables"
)

// DefaultKeep is how long rows are kept that need nobody any more (standard, sections 2 and 4).
const DefaultKeep = 90 * 24 * time.Hour

// Retention says what is kept for how long (standard, sections 2, 4 and 6).
type Retention struct {
	// Engines are those whose rows it is about, at least one.
	Engines []string
	// Keep is for how long; 0 means DefaultKeep.
	Keep time.Duration
}

// cutoff is the time before which things may go.
func (r Retention) cutoff(now time.Time) (time.Time, error) {
	if len(r.Engines) == 0 || r.Keep < 0 {
		return time.Time{}, errors.New("retention: name at least one engine, and no negative time to keep")
	}
	if r.Keep == 0 {
		r.Keep = DefaultKeep
	}
	return now.Add(-r.Keep), nil
}

// removeEach hands index rows that begin with the prefix and whose time is before the cutoff to remove, page by page, until limit
// of them are gone; more says that there may be others. What is removed is not found again, so the next call needs to know
// nothing of this one.
func (r Retention) removeEach(ctx context.Context, store tables.Store, table, prefix string, now time.Time, limit int,
	remove func(ctx context.Context, page []tables.Entity) error,
) (removed int, more bool, err error) {
	cutoff, err := r.cutoff(now)
	if err != nil {
		return 0, false, err
	}
	for _, engine := range r.Engines {
		from, to := indexRange(prefix, time.Time{}, cutoff)
		q := tables.Query{Partition: tables.EscapeKey(engine), From: from, To: to, Select: []string{targetColumn}, Limit: maxEntries}
		for first := true; first || q.Continuation != ""; first = false {
			if removed >= limit {
				return removed, true, nil
			}
			page, err := store.Query(ctx, table, q)
			rows := page.Entities[:min(len(page.Entities), limit-removed)]
			if err == nil && len(rows) > 0 {
				err = remove(ctx, rows)
			}
			if err != nil {
				return removed, true, fmt.Errorf("retention of %s in %s: %w", engine, table, err)
			}
			removed += len(rows)
			if len(rows) < len(page.Entities) {
				return removed, true, nil
			}
			q.Continuation = page.Next
		}
	}
	return removed, false, nil
}

// Retention deletes dead letters that were resolved, or expired, longer ago than they are kept (standard, section 2): the
// time counts from when that was decided, and what is pending stays for ever. It deletes up to limit of them, row, index
// rows and count of each in one transaction, and says whether there may be more; the next call goes on where this one
// ended, or died. It reads index rows of what may go, and nothing else.
func (d *DeadLetters) Retention(ctx context.Context, r Retention, now time.Time, limit int) (removed int, more bool, err error) {
	return r.removeEach(ctx, d.store, d.table, endedPrefix, now, limit, func(ctx context.Context, page []tables.Entity) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(parallelQueries)
		for _, row := range page {
			group.Go(func() (err error) {
				defer func() {
					if p := recover(); p != nil { // nobody above this goroutine could recover for it
						err = fmt.Errorf("panic: %v", p)
					}
				}()
				return d.remove(ctx, row)
			})
		}
		return group.Wait()
	})
}

// remove deletes the dead letter that an index row of its end names. One that somebody has changed meanwhile stays: if it
// has ended again, a later index row says so.
func (d *DeadLetters) remove(ctx context.Context, index tables.Entity) error {
	key := tables.Key{Partition: index.Partition, Row: index.String(targetColumn)}
	e, err := d.store.Get(ctx, d.table, key)
	if errors.Is(err, tables.ErrNotFound) { // another process removes, too, or somebody took the row alone away by hand
		err = d.store.Apply(ctx, d.table, tables.Delete(index.Key, ""))
		if errors.Is(err, tables.ErrNotFound) {
			err = nil
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	letter, err := deadLetterOf(e)
	if err != nil {
		return err
	}
	ops := []tables.Op{tables.Delete(key, e.ETag)}
	named := false
	for _, row := range letter.indexRows(e) {
		named = named || row.Row == index.Row
		ops = append(ops, tables.Delete(row.Key, ""))
	}
	if !named {
		return nil
	}
	err = d.applyCounted(ctx, key, letter.Status, "", ops...)
	if errors.Is(err, tables.ErrPrecondition) || errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}
