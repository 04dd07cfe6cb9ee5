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
	clean time.Time // when that began: errors from before have been repaired
	step  string
	// where the step continues, "" at its beginning: a continuation of orchestrations, or the key of the next row
	next string
	sums sums // of what the pass has read
}

// mark is the value in rows that this pass has found to be correct.
func (p pass) mark() int64 { return p.began.UnixMicro() }

// Repair compares the whole index with all orchestrations, one slice in each call, and repairs it. It returns how many
// orchestrations lacked rows plus how many rows belonged to none. The next call continues behind the slice, in any
// process. After the last slice there is nothing to do for Config.RepairEvery. One call at a time is enough for all
// processes; several do no harm.
//
// A pass reads first, the last of the orchestrations and the first of the rows in one call: it adds up, in buckets of ids, the
// rows that the orchestrations should have, and the rows that there are. What a change in between makes differ is looked at as if it were wrong. Buckets whose sums are equal are correct, and a pass
// that finds no others is done. Else it goes over the orchestrations of the others, marks the rows that each should have, and
// writes those that are missing; then over the rows, and deletes those without the mark that no orchestration should have.
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
		p.began, p.step, p.next, p.sums = c.config.Now(), stepTruth, "", make(sums, buckets)
		if err := c.savePass(ctx, p); err != nil { // the lag has to count from here even if the slice fails
			return 0, err
		}
	}
	first := p.step
	mended, p, err = c.advance(ctx, p)
	if err == nil && first == stepTruth && p.step == stepRows { // at once: less changes in between
		mended, p, err = c.advance(ctx, p)
	}
	if err != nil {
		return mended, err
	}
	return mended, c.savePass(ctx, p)
}

// following is the step that comes after one; "" ends the pass.
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
		return mended, pass{done: p.done, clean: p.clean, began: p.began}, nil // the place cannot be used, so the pass begins again
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
	p := pass{e.Time(columnBegan), e.Time(columnDone), e.Time(columnClean), e.String(columnStep), e.String(columnNext), decodeSums(e.Bytes(columnSums))}
	if p.sums == nil && (p.step == stepTruth || p.step == stepRows) {
		p.step = "" // what the pass has read is lost, so it begins again
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
