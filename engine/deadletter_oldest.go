package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// oldestPage bounds the pending dead letters that are read to find the oldest.
	oldestPage = 1000
	// oldestProbes bounds the queries for the oldest of more than that.
	oldestProbes = 40
	// oldestShare is the precision of the oldest one's age then: a hundredth.
	oldestShare = 100
	// firstProbe is the age of the first probe.
	firstProbe = time.Minute
)

// OldestPending returns the last failure of the pending dead letter that waits longest; zero when none is pending.
// The index is read newest first: up to 1,000 pending ones cost one query. Beyond that, OldestPending searches by
// age, in at most 40 queries of one row, and the result is at most a hundredth of its age too young.
func (d *DeadLetters) OldestPending(ctx context.Context, engine string) (time.Time, error) {
	prefix := statusPrefix(string(StatusPending))
	q := tables.Query{Partition: tables.EscapeKey(engine), From: prefix, To: tables.PrefixEnd(prefix), Select: []string{failedColumn}, Limit: oldestPage}
	page, err := d.store.Query(ctx, d.table, q)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the oldest dead letter of %s: %w", engine, err)
	}
	if len(page.Entities) == 0 && page.Next == "" {
		return time.Time{}, nil
	}
	last := time.Now()
	if n := len(page.Entities); n > 0 {
		last = page.Entities[n-1].Time(failedColumn)
	}
	if page.Next == "" {
		return last, nil
	}
	return d.probeOldest(ctx, engine, last)
}

// failedColumn holds the time of the last failure, by which the index is ordered.
const failedColumn = "LastFailureAtUtc"

// probeOldest searches the oldest pending dead letter among those that failed before a time: it doubles the age until
// it finds none, and then narrows the range.
func (d *DeadLetters) probeOldest(ctx context.Context, engine string, known time.Time) (time.Time, error) {
	now := time.Now()
	oldest, none, back := known, time.Time{}, max(now.Sub(known), firstProbe)
	for range oldestProbes {
		at := oldest.Add(-back)
		if !none.IsZero() {
			at = none.Add(oldest.Sub(none) / 2)
		}
		found, err := d.pendingBefore(ctx, engine, at)
		switch {
		case err != nil:
			return time.Time{}, err
		case found.IsZero():
			none = at
		default:
			oldest, back = found, 2*back
		}
		if !none.IsZero() && oldest.Sub(none) <= now.Sub(oldest)/oldestShare {
			break
		}
	}
	return oldest, nil
}

// pendingBefore returns the last failure of the newest pending dead letter that failed before a time; zero for none.
func (d *DeadLetters) pendingBefore(ctx context.Context, engine string, at time.Time) (time.Time, error) {
	from, to := indexRange(statusPrefix(string(StatusPending)), time.Time{}, at)
	q := tables.Query{Partition: tables.EscapeKey(engine), From: from, To: to, Select: []string{failedColumn}, Limit: 1}
	for {
		page, err := d.store.Query(ctx, d.table, q)
		if err != nil {
			return time.Time{}, fmt.Errorf("find the oldest dead letter of %s: %w", engine, err)
		}
		if len(page.Entities) > 0 {
			return page.Entities[0].Time(failedColumn), nil
		}
		if q.Continuation = page.Next; page.Next == "" {
			return time.Time{}, nil
		}
	}
}
