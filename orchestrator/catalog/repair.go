package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// The steps of a pass, as they are stored; "" is none.
const (
	stepMark  = "mark"
	stepSweep = "sweep"
)

const (
	repairPartition = "repair"
	repairRow       = "state"

	columnBegan = "BeganAtUtc"
	columnDone  = "DoneAtUtc"
	columnClean = "CleanAtUtc"
	columnStep  = "Step"
	columnNext  = "Next"
)

// pass is how far the repair is. It is stored after each slice, so that any process goes on with it.
type pass struct {
	began time.Time // the pass at work, or the last one
	done  time.Time // the last one that came to its end; zero before the first
	clean time.Time // that began: what was wrong before then has been mended
	step  string
	next  string // where the step goes on, "" at its beginning: a continuation of orchestrations, or the first row that follows
}

// mark is what the rows have that the pass has found right.
func (p pass) mark() int64 { return p.began.UnixMicro() }

// Repair compares the whole index with all orchestrations, a slice a call, and mends it; it gives how many orchestrations
// lacked rows and how many rows were none's. The next call goes on behind the slice, in whatever process. When the last one
// is done, nothing is to do for Config.RepairEvery. One call at a time is enough for all processes; several do no harm.
//
// A pass has two steps. The first goes over the orchestrations and marks each row that they imply, and writes those that
// are not there; the second goes over the rows and removes those that no orchestration implies, of those without the mark.
// What changes meanwhile is judged by the status as it is then, and a row goes only if nobody has written it since. So what
// was wrong when a pass began is right when it is done.
func (c *Catalog) Repair(ctx context.Context) (mended int, err error) {
	if mended, err = c.repair(ctx); err != nil {
		return mended, fmt.Errorf("repair of the list of orchestrations: %w", err)
	}
	return mended, nil
}

func (c *Catalog) repair(ctx context.Context) (mended int, err error) {
	c.mu.Lock()
	resting := c.config.Now().Before(c.idleUntil)
	c.mu.Unlock()
	if resting {
		return 0, nil
	}
	p, err := c.loadPass(ctx)
	if err != nil {
		return 0, err
	}
	if p.step == "" {
		rested := p.done.Add(c.config.RepairEvery)
		if !p.done.IsZero() && c.config.Now().Before(rested) {
			c.pauseUntil(rested)
			return 0, nil
		}
		p.began, p.step, p.next = c.config.Now(), stepMark, ""
		if err := c.savePass(ctx, p); err != nil { // so that the lag counts from here, whatever becomes of the slice
			return 0, err
		}
	}
	if mended, p, err = c.advance(ctx, p); err != nil {
		return mended, err
	}
	return mended, c.savePass(ctx, p)
}

// advance carries out a slice, and gives how far the pass is then.
func (c *Catalog) advance(ctx context.Context, p pass) (mended int, after pass, err error) {
	if p.step == stepMark {
		mended, p.next, err = c.mark(ctx, p)
		switch {
		case errors.Is(err, orchestrator.ErrContinuation):
			return mended, pass{done: p.done, clean: p.clean, began: p.began}, nil // the place is of no use: the pass begins anew
		case p.next == "":
			p.step = stepSweep
		}
		return mended, p, err
	}
	mended, p.next, err = c.sweep(ctx, p)
	if err == nil && p.next == "" {
		p.step, p.done, p.clean = "", c.config.Now(), p.began
		c.pauseUntil(p.done.Add(c.config.RepairEvery))
	}
	return mended, p, err
}

func (c *Catalog) pauseUntil(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idleUntil = at
}

// RepairLag is how long something can have been wrong in the index: the time since the last pass began that has come to its
// end; until one has, since the first began; 0 before that. It costs a read.
func (c *Catalog) RepairLag(ctx context.Context) (time.Duration, error) {
	p, err := c.loadPass(ctx)
	if err != nil {
		return 0, fmt.Errorf("lag of the repair of the list of orchestrations: %w", err)
	}
	since := p.clean
	if since.IsZero() {
		since = p.began
	}
	if since.IsZero() {
		return 0, nil
	}
	return max(0, c.config.Now().Sub(since)), nil
}

// loadPass reads how far the repair is. A place that another version has stored, without a step, counts for nothing.
func (c *Catalog) loadPass(ctx context.Context) (pass, error) {
	e, err := c.config.Tables.Get(ctx, c.config.Table, tables.Key{Partition: repairPartition, Row: repairRow})
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return pass{}, err
	}
	return pass{e.Time(columnBegan), e.Time(columnDone), e.Time(columnClean), e.String(columnStep), e.String(columnNext)}, nil
}

func (c *Catalog) savePass(ctx context.Context, p pass) error {
	columns := map[string]any{columnStep: p.step, columnNext: p.next}
	for name, at := range map[string]time.Time{columnBegan: p.began, columnDone: p.done, columnClean: p.clean} {
		if !at.IsZero() {
			columns[name] = at
		}
	}
	return c.config.Tables.Apply(ctx, c.config.Table, tables.Upsert(tables.Entity{Key: tables.Key{Partition: repairPartition, Row: repairRow}, Properties: columns}))
}
