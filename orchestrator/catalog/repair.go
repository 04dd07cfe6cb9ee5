package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// These are the stored steps of a pass; "" is none.
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

// pass is the state of the repair. It is stored after each slice, so that any process can continue.
type pass struct {
	began time.Time // beginning of the current pass, or of the last one
	done  time.Time // end of the last finished pass; zero before the first
	clean time.Time // when that began: errors from before have been repaired
	step  string
	// where the step continues, "" at its beginning: a continuation of orchestrations, or the key of the next row
	next string
}

// mark is the value in rows that this pass has found to be correct.
func (p pass) mark() int64 { return p.began.UnixMicro() }

// Repair compares the whole index with all orchestrations, one slice in each call, and repairs it. It returns how many
// orchestrations lacked rows plus how many rows belonged to none. The next call continues behind the slice, in any
// process. After the last slice there is nothing to do for Config.RepairEvery. One call at a time is enough for all
// processes; several do no harm.
//
// A pass has two steps. The first goes over the orchestrations, marks the rows that each should have, and writes those
// that are missing. The second goes over the rows and deletes those without the mark that no orchestration should have.
// Changes in between are judged by the current status, and a row is deleted only if nobody has written it since. So
// what was wrong at the beginning of a pass is correct at its end.
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
		if err := c.savePass(ctx, p); err != nil { // the lag has to count from here even if the slice fails
			return 0, err
		}
	}
	if mended, p, err = c.advance(ctx, p); err != nil {
		return mended, err
	}
	return mended, c.savePass(ctx, p)
}

// advance processes one slice, and returns the state of the pass after it.
func (c *Catalog) advance(ctx context.Context, p pass) (mended int, after pass, err error) {
	if p.step == stepMark {
		mended, p.next, err = c.mark(ctx, p)
		switch {
		case errors.Is(err, orchestrator.ErrContinuation):
			return mended, pass{done: p.done, clean: p.clean, began: p.began}, nil // the place cannot be used, so the pass begins again
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

// RepairLag is for how long an error can have been in the index: the time since the beginning of the last finished
// pass; before that is finished, since the beginning of the first pass; 0 before that. It costs a read.
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

// loadPass reads the state of the repair. A place that another version has stored, without a step, is ignored.
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
