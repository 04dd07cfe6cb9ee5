package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/tables"
)

// removedAtOnce bounds the rows of a page that are removed together.
const removedAtOnce = 50

// DefaultKeep is the default retention of finished rows (standard, sections 2 and 4).
const DefaultKeep = 90 * 24 * time.Hour

// Retention configures the retention of rows (standard, sections 2, 4 and 6).
type Retention struct {
	// Engines are the engines whose rows are checked, at least one.
	Engines []string
	// Keep is the retention time; 0 means DefaultKeep.
	Keep time.Duration
	// Singletons means that the engines are singletons, whose correlation ids are reserved: these are released with
	// the history.
	Singletons bool
}

// cutoff returns the time before which rows may be deleted.
func (r Retention) cutoff(now time.Time) (time.Time, error) {
	if len(r.Engines) == 0 || r.Keep < 0 {
		return time.Time{}, errors.New("retention: name at least one engine, and no negative time to keep")
	}
	if r.Keep == 0 {
		r.Keep = DefaultKeep
	}
	return now.Add(-r.Keep), nil
}

// removeEach passes index rows with the prefix whose time is before the cutoff to remove, page by page, until limit
// rows are removed; more reports whether others may exist. Removed rows are not found again, so the next call needs
// no continuation.
func (r Retention) removeEach(ctx context.Context, store tables.Store, table, prefix string, now time.Time, limit int,
	remove func(ctx context.Context, page []tables.Entity) error,
) (removed int, more bool, err error) {
	cutoff, err := r.cutoff(now)
	if err != nil {
		return 0, false, err
	}
	for _, engine := range r.Engines {
		from, to := indexRange(prefix, time.Time{}, cutoff)
		q := tables.Query{Partition: tables.EscapeKey(engine), From: from, To: to, Select: []string{targetColumn, tenantColumn, "InstanceId", byInstanceColumn}, Limit: removedAtOnce}
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

// index adds missing rows of the engines to the index by instance.
func (r Retention) index(ctx context.Context, i *instances, lists []string, now time.Time) error {
	for _, engine := range r.Engines {
		if err := i.update(ctx, engine, lists, now); err != nil {
			return err
		}
	}
	return nil
}

// Retention deletes dead letters whose resolution or expiry is older than their retention time (standard, section 2).
// The time counts from that decision; pending dead letters are kept for ever. It deletes up to limit of them, each
// with its index rows and its count in one transaction, and reports whether more may exist; another call continues,
// also after a crash. It reads only index rows of deletable dead letters. When none are left, it adds missing rows to
// the index by instance and to the counts of causes.
func (d *DeadLetters) Retention(ctx context.Context, r Retention, now time.Time, limit int) (removed int, more bool, err error) {
	removed, more, err = r.removeEach(ctx, d.store, d.table, endedPrefix, now, limit, func(ctx context.Context, page []tables.Entity) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(parallelQueries)
		for _, row := range page {
			group.Go(func() (err error) {
				defer func() {
					if p := recover(); p != nil { // a panic in this goroutine would end the process
						err = fmt.Errorf("panic: %v", p)
					}
				}()
				return d.remove(ctx, row)
			})
		}
		return group.Wait()
	})
	if err != nil || more {
		return removed, more, err
	}
	if err := r.index(ctx, d.instances, deadLetterStatuses(), now); err != nil {
		return removed, false, err
	}
	for _, engine := range r.Engines {
		if err := d.recount(ctx, engine); err != nil {
			return removed, false, err
		}
	}
	return removed, false, nil
}

// remove deletes the dead letter that an index row of its end refers to. If the dead letter has changed meanwhile, it
// stays; if it has ended again, a later index row refers to it.
func (d *DeadLetters) remove(ctx context.Context, index tables.Entity) error {
	key := tables.Key{Partition: index.Partition, Row: index.String(targetColumn)}
	e, err := d.store.Get(ctx, d.table, key)
	if errors.Is(err, tables.ErrNotFound) { // another process or an operator has deleted the row
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
	err = d.applyCounted(ctx, key, letter, letter.Status, "", ops...)
	if errors.Is(err, tables.ErrPrecondition) || errors.Is(err, tables.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}
