package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

const (
	repairPartition = "repair"
	repairRow       = "state"

	columnFrom = "From"
	columnNext = "Next"
	columnDone = "DoneAtUtc"

	// repairSlice is how many orchestrations one call compares.
	repairSlice = 500
)

// Repair compares a slice of the orchestrations with the index, and mends that; it gives how many rows of either it found
// wrong. The next call goes on behind it, in whatever process. When the last slice is done, nothing is to do for
// Config.RepairEvery. One call at a time is enough for all processes; several do no harm.
func (c *Catalog) Repair(ctx context.Context) (mended int, err error) {
	c.mu.Lock()
	resting := c.config.Now().Before(c.rest)
	c.mu.Unlock()
	if resting {
		return 0, nil
	}
	state, err := c.config.Tables.Get(ctx, c.config.Table, tables.Key{Partition: repairPartition, Row: repairRow})
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return 0, fmt.Errorf("repair of the list of orchestrations: %w", err)
	}
	if done := state.Time(columnDone); !done.IsZero() && c.config.Now().Before(done.Add(c.config.RepairEvery)) {
		c.sleepUntil(done.Add(c.config.RepairEvery))
		return 0, nil
	}
	from, next := state.String(columnFrom), state.String(columnNext)
	mended, from, next, err = c.slice(ctx, from, next)
	if err != nil {
		return mended, fmt.Errorf("repair of the list of orchestrations: %w", err)
	}
	columns := map[string]any{columnFrom: from, columnNext: next}
	if next == "" {
		now := c.config.Now()
		columns[columnDone] = now
		c.sleepUntil(now.Add(c.config.RepairEvery))
	}
	err = c.config.Tables.Apply(ctx, c.config.Table, tables.Upsert(tables.Entity{Key: tables.Key{Partition: repairPartition, Row: repairRow}, Properties: columns}))
	if err != nil {
		return mended, fmt.Errorf("repair of the list of orchestrations: %w", err)
	}
	return mended, nil
}

func (c *Catalog) sleepUntil(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = at
}

// slice compares the orchestrations from a key on, and gives where the next slice begins; "" at the end.
func (c *Catalog) slice(ctx context.Context, from, next string) (mended int, thenFrom, thenNext string, err error) {
	there, then, err := c.config.Runtime().List(ctx, orchestrator.Filter{}, repairSlice, next)
	if err != nil {
		return 0, "", "", err
	}
	q := tables.Query{Partition: listPartition, From: viewID + from, To: tables.PrefixEnd(viewID)}
	if then != "" {
		thenFrom = tables.EscapeKey(there[len(there)-1].ID) + " " // the first that can follow
		q.To = viewID + thenFrom
	}
	known := map[string]tables.Entity{}
	for row, err := range tables.All(ctx, c.config.Tables, c.config.Table, q) {
		if err != nil {
			return 0, "", "", err
		}
		known[row.String(columnID)] = row
	}
	var wrong []string
	for _, s := range there {
		row, ok := known[s.ID]
		if delete(known, s.ID); !ok || !entryOf(row).equal(entryFor(s)) {
			wrong = append(wrong, s.ID)
			known[s.ID] = row
		}
	}
	for id := range known {
		if !slices.Contains(wrong, id) {
			wrong = append(wrong, id)
		}
	}
	for _, id := range wrong {
		if err := c.mend(ctx, id, known[id]); err != nil {
			return mended, "", "", err
		}
		mended++
	}
	return mended, thenFrom, then, nil
}

// mend makes the rows of an orchestration what they have to be, by what it is now. row is that of its id, or zero.
func (c *Catalog) mend(ctx context.Context, id string, row tables.Entity) error {
	var right []string
	s, err := c.config.Runtime().Status(ctx, id)
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		if err := c.config.Runtime().FindDamage(ctx, id); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		e := entryFor(s)
		right = e.all()
		if err := c.write(ctx, []change{{entry: e, began: true}}); err != nil {
			return err
		}
	}
	if row.Row == "" {
		return nil
	}
	var gone []tables.Op
	for _, name := range entryOf(row).all() {
		switch {
		case slices.Contains(right, name):
		case name == row.Row:
			gone = append(gone, tables.Delete(row.Key, row.ETag)) // unless one of this id has begun meanwhile
		default:
			gone = append(gone, tables.Delete(key(name), ""))
		}
	}
	return c.remove(ctx, gone)
}
