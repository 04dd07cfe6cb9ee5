package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// The stored steps of a pass; "" is none.
const (
	stepTruth = "truth"
	stepRows  = "rows"
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
	columnSums  = "Sums"
)

// pass is the state of the repair. It is stored after each slice, so that any process can continue.
type pass struct {
	began time.Time // beginning of the current pass, or of the last one
	done  time.Time // end of the last finished pass; zero before the first
	clean time.Time // when that began: earlier errors have been repaired
	step  string
	// where the step continues, "" at its beginning: a continuation of orchestrations, or the key of the next row
	next string
	sums sums // of the rows that the pass has read
}

// mark returns the mark of rows that this pass found to be correct.
func (p pass) mark() int64 { return p.began.UnixMicro() }

// Repair compares the whole index with all orchestrations, one slice in each call, and repairs it. It returns how
// many orchestrations lacked rows plus how many rows belonged to none. The next call continues behind the slice, in
// any process. After the last slice, Repair does nothing for Config.RepairEvery. One call at a time is enough for all
// processes; several do no harm.
//
// A pass first reads the orchestrations and then the rows, the last slice of the one and the first of the other in
// one call. It sums, in buckets of ids, the expected rows and the existing rows. A concurrent change counts as a
// difference. Buckets with equal sums are correct, and a pass without others is done. Otherwise it marks the expected
// rows of the orchestrations in the other buckets, and writes missing ones. Then it scans the rows, and deletes
// unmarked rows that no orchestration should have. The current status decides about concurrent changes, and a row is
// deleted only if it was not written since. So errors from before a pass are fixed at its end.
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
		p.began, p.step, p.next, p.sums = c.config.Now(), stepTruth, "", make(sums, buckets)
		if err := c.savePass(ctx, p); err != nil { // the lag counts from here even if the slice fails
			return 0, err
		}
	}
	first := p.step
	mended, p, err = c.advance(ctx, p)
	if err == nil && first == stepTruth && p.step == stepRows { // immediately, so that fewer changes come in between
		mended, p, err = c.advance(ctx, p)
	}
	if err != nil {
		return mended, err
	}
	return mended, c.savePass(ctx, p)
}

// following returns the step after one; "" ends the pass.
func (p pass) following() string {
	switch {
	case p.step == stepTruth:
		return stepRows
	case p.step == stepRows && !p.sums.equal():
		return stepMark
	case p.step == stepMark:
		return stepSweep
	default:
		return ""
	}
}

// advance processes one slice, and returns the state of the pass after it.
func (c *Catalog) advance(ctx context.Context, p pass) (mended int, after pass, err error) {
	switch p.step {
	case stepTruth:
		p.next, err = c.sumOrchestrations(ctx, p)
	case stepRows:
		p.next, err = c.sumRows(ctx, p)
	case stepMark:
		mended, p.next, err = c.mark(ctx, p)
	default:
		mended, p.next, err = c.sweep(ctx, p)
	}
	if errors.Is(err, orchestrator.ErrContinuation) {
		return mended, pass{done: p.done, clean: p.clean, began: p.began}, nil // the place is unusable, so the pass starts over
	}
	if err != nil || p.next != "" {
		return mended, p, err
	}
	if p.step = p.following(); p.step == "" {
		p.done, p.clean, p.sums = c.config.Now(), p.began, nil
		c.pauseUntil(p.done.Add(c.config.RepairEvery))
	}
	return mended, p, nil
}

func (c *Catalog) pauseUntil(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idleUntil = at
}

// RepairLag returns the maximum age of an error in the index: the time since the beginning of the last finished pass;
// before one has finished, since the beginning of the first pass; 0 before that. It costs a read.
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
	p := pass{e.Time(columnBegan), e.Time(columnDone), e.Time(columnClean), e.String(columnStep), e.String(columnNext), decodeSums(e.Bytes(columnSums))}
	if p.sums == nil && (p.step == stepTruth || p.step == stepRows) {
		p.step = "" // the sums are lost, so the pass starts over
	}
	return p, nil
}

func (c *Catalog) savePass(ctx context.Context, p pass) error {
	columns := map[string]any{columnStep: p.step, columnNext: p.next, columnSums: p.sums.encode()}
	for name, at := range map[string]time.Time{columnBegan: p.began, columnDone: p.done, columnClean: p.clean} {
		if !at.IsZero() {
			columns[name] = at
		}
	}
	return c.config.Tables.Apply(ctx, c.config.Table, tables.Upsert(tables.Entity{Key: tables.Key{Partition: repairPartition, Row: repairRow}, Properties: columns}))
}
