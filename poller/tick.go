package poller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// tick is one run of a poller.
type tick struct {
	*Runner
	began  time.Time
	lease  *lease
	doc    *Document // as stored last
	result Result
	// databaseID is the id of the database in this tick, "" before its query and when unknown.
	databaseID string
}

// run checks for work before it acquires the lease. Rows that were fetched before are still valid if the document has
// the same version when the lease is acquired.
func (t *tick) run(ctx context.Context) error {
	doc, state, err := t.leases.load(ctx)
	if err != nil {
		return err
	}
	if t.observed.etag != state.ETag {
		t.observed = observedVersion{state.ETag, t.config.Now()}
	}
	if doc == nil {
		doc = newDocument(t.config.Name)
	}
	t.doc = doc
	if err := t.mayRun(doc, state); err != nil || t.result.Done {
		return err
	}
	if err := t.identify(ctx, doc); err != nil {
		return err
	}
	if err := t.check(ctx); err != nil {
		return err
	}
	var batch *Batch
	if !t.options.Backfill || doc.Backfill != nil {
		if batch, err = t.fetch(ctx); err != nil {
			return err
		}
		if len(batch.Rows) == 0 && doc.Backfill == nil && !(t.passable(batch) && t.heartbeatDue(state)) {
			return t.idleTick(ctx, state)
		}
	}
	place := doc.Cursor()
	if t.lease, err = t.leases.acquire(ctx, doc, state, t.observed, t.writeDefinition); err != nil {
		return err
	}
	t.doc = t.lease.acquired
	if !t.doc.Cursor().Equal(place) {
		batch = nil // another process has committed in between
	}
	err = t.deliverAll(ctx, batch)
	if releaseErr := t.lease.release(func(*Document) {}); releaseErr != nil && err == nil {
		// Everything is committed; other processes have to wait for the lease to end.
		t.config.Log.InfoContext(ctx, "poller lease not given back", "poller", t.config.Name, "error", t.errorText(releaseErr))
	}
	return err
}

// identify queries the id of the database and compares it with the one in the document.
func (t *tick) identify(ctx context.Context, doc *Document) (err error) {
	if t.databaseID, err = databaseID(ctx, t.config.Source); err != nil {
		return err
	}
	_, _, err = t.definitionFor(doc)
	return err
}

// definitionFor returns the current definition and its fingerprint for a document of this poller.
func (t *tick) definitionFor(doc *Document) (fingerprint string, text json.RawMessage, err error) {
	return definitionFor(doc, t.config.Source.Definition(), t.databaseID)
}

// writeDefinition stores the definition with the checkpoint, unless the checkpoint belongs to another definition. A
// poller that is no longer a backfill loses its end.
func (t *tick) writeDefinition(d *Document) error {
	fingerprint, text, err := t.definitionFor(d)
	if err != nil {
		return err
	}
	if was, is := databaseOf(d.Definition), databaseOf(text); was.Address != "" && was.Address != is.Address {
		t.config.Log.Warn("poller database has another address", "poller", t.config.Name, "was", was.Address, "is", is.Address)
	}
	d.Fingerprint, d.Definition = fingerprint, text
	if !t.options.Backfill {
		d.Backfill = nil
	}
	return nil
}

// mayRun checks a document before any work.
func (t *tick) mayRun(doc *Document, state State) error {
	if doc.Retired {
		return ErrRetired
	}
	_, _, err := t.definitionFor(doc)
	if changed, ok := errors.AsType[*FingerprintError](err); err != nil && !(ok && changed.database && !changed.other) { // the id of the database is still unknown
		return err
	}
	if err := t.leases.checkHeld(doc, state, t.observed); err != nil {
		return err
	}
	if t.options.Backfill && doc.Backfill != nil && doc.Backfill.Done {
		t.result.Done, t.result.Drained = true, true
		return nil
	}
	if f := doc.Failure; f != nil && state.Time.Before(f.NextAt) {
		return fmt.Errorf("%w: %s, after %d attempts: %s", ErrWaiting, f.NextAt.Format(time.RFC3339), f.Attempts, f.Error)
	}
	return nil
}

// check checks, once, whether the source can be read as it is defined.
func (t *tick) check(ctx context.Context) error {
	if t.checked {
		return nil
	}
	advice, err := t.config.Source.Check(ctx)
	if err != nil {
		return fmt.Errorf("check the source: %w", err)
	}
	for _, text := range advice {
		t.config.Log.WarnContext(ctx, "poller advice", "poller", t.config.Name, "advice", text)
	}
	t.checked = true
	return nil
}

// idleTick ends a tick without rows. It writes the document only if nothing was written for a long time.
func (t *tick) idleTick(ctx context.Context, state State) error {
	// A document of an earlier program does not name its database. It gets the name now, before the database can change.
	fingerprint, _, err := t.definitionFor(t.doc)
	if err != nil {
		return err
	}
	if fingerprint == t.doc.Fingerprint && !t.heartbeatDue(state) {
		return nil
	}
	meant := t.doc.clone()
	if err := t.writeDefinition(meant); err != nil {
		return err
	}
	meant.PolledAt = t.leases.clock.time()
	// A conflict does not matter: another process's write also shows that the poller is running.
	if _, _, err := t.leases.swap(ctx, meant, state.ETag); err != nil && !needsReread(err) {
		return fmt.Errorf("write that there are no rows: %w", err)
	}
	return nil
}

// heartbeatDue reports whether an idle tick is to be recorded, because nothing was written for long enough.
func (t *tick) heartbeatDue(state State) bool {
	last := t.doc.PolledAt
	if c := t.doc.Checkpoint; c != nil && c.UpdatedAt.After(last) {
		last = c.UpdatedAt
	}
	return state.ETag == "" || state.Time.Sub(last) >= t.options.IdleHeartbeat
}

// passable reports whether a batch without rows has a position up to which none exist.
func (t *tick) passable(b *Batch) bool {
	order, ok := compare(t.doc.Cursor(), b.Through)
	return !b.Through.IsZero() && (t.doc.Cursor().IsZero() || ok && order < 0)
}

// pass moves the checkpoint to that position of a batch.
func (t *tick) pass(b *Batch) error {
	if len(b.Rows) > 0 || b.More || !t.passable(b) {
		return nil
	}
	doc, err := t.lease.write(func(d *Document) {
		next := Checkpoint{}
		if d.Checkpoint != nil {
			next = *d.Checkpoint
		}
		next.Cursor, next.cursorExtra, next.UpdatedAt = b.Through, nil, t.leases.clock.time()
		d.Checkpoint, d.PolledAt = &next, t.leases.clock.time()
	})
	if err != nil {
		return fmt.Errorf("write that there are no rows up to %s: %w", b.Through, err)
	}
	t.doc = doc
	return nil
}

// deliverAll delivers batches until no rows or no time is left.
func (t *tick) deliverAll(ctx context.Context, batch *Batch) error {
	if t.options.Backfill && t.doc.Backfill == nil {
		if err := t.freezeEnd(ctx); err != nil {
			return err
		}
	}
	for {
		if batch == nil {
			var err error
			if batch, err = t.fetch(ctx); err != nil {
				return err
			}
		}
		began := t.config.Now()
		rows, ended := t.upToEnd(batch)
		if len(rows) > 0 {
			if err := t.process(ctx, rows); err != nil {
				return err
			}
		}
		if ended {
			return t.finishBackfill()
		}
		if !batch.More {
			t.result.Drained = true
			return t.pass(batch)
		}
		if !t.throttle(ctx, len(rows), began) || t.outOfTime() {
			return nil
		}
		batch = nil
	}
}

// outOfTime reports whether the tick's time is used up.
func (t *tick) outOfTime() bool { return t.config.Now().Sub(t.began) >= t.options.Budget }

// safeCursorBytes is the length in bytes up to which a cursor is known to fit the document.
const safeCursorBytes = 256

// fetch reads the next rows, and checks the promises of the source.
func (t *tick) fetch(ctx context.Context) (*Batch, error) {
	limit := t.size.size
	if f := t.doc.Failure; f != nil && f.Rows > 0 {
		limit = min(limit, f.Rows) // the batch that has failed, not a longer one
	}
	if rate := t.options.RowsPerSecond; rate > 0 {
		limit = min(limit, rate)
	}
	after := t.doc.Cursor()
	if t.lease != nil { // a lost lease stops a long query, too
		var cancel context.CancelFunc
		ctx, cancel = t.withLease(ctx)
		defer cancel()
	}
	batch, err := t.config.Source.Fetch(ctx, after, limit, t.options.MaxBytes)
	if err != nil {
		t.checked = false // the table may have changed, so it is checked again
		return nil, fmt.Errorf("fetch behind %s: %w", after, t.withLeaseCause(err))
	}
	if len(batch.Rows) > limit {
		return nil, fmt.Errorf("%w: %d rows where %d were asked for", ErrOrder, len(batch.Rows), limit)
	}
	for i, last := 0, after; i < len(batch.Rows); i++ {
		next := batch.Rows[i].Cursor
		if order, ok := compare(last, next); ok && order >= 0 {
			return nil, fmt.Errorf("%w: %s comes behind %s: the cursor column must not go back, and with the key columns must be unique", ErrOrder, next, last)
		}
		// Rows whose position cannot be stored would be delivered repeatedly.
		if len(next.Value)+len(next.Tiebreaker) > safeCursorBytes {
			if err := next.checkFits(); err != nil {
				return nil, fmt.Errorf("row %.256s: %w", batch.Rows[i].Key, err)
			}
		}
		last = next
	}
	if batch.Advice != "" && batch.Advice != t.advised {
		t.config.Log.WarnContext(ctx, "poller advice", "poller", t.config.Name, "advice", batch.Advice)
	}
	t.advised = batch.Advice
	t.result.HeldBack = batch.HeldBack
	t.result.Drained = !batch.More && len(batch.Rows) == 0
	return &batch, nil
}

// withLease returns a context that also ends when the lease is lost.
func (t *tick) withLease(ctx context.Context) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.lease.ctx, func() { cancel(context.Cause(t.lease.ctx)) })
	return bounded, func() {
		stop()
		cancel(nil)
	}
}

// withLeaseCause adds the loss of the lease to an error, if the lease is lost.
func (t *tick) withLeaseCause(err error) error {
	if t.lease != nil && t.lease.ctx.Err() != nil {
		return errors.Join(context.Cause(t.lease.ctx), err)
	}
	return err
}

// process delivers a batch and commits it.
func (t *tick) process(ctx context.Context, rows []Row) error {
	began := t.config.Now()
	err := t.deliver(ctx, rows)
	took := t.config.Now().Sub(began)
	if err == nil {
		t.size.observe(len(rows), took)
		var left *Failure
		if f := t.doc.Failure; f != nil && f.Bisecting {
			left = remainingFailure(f, f.Suspects-len(rows))
		}
		return t.commit(rows, 0, left)
	}
	if took > t.options.HandlerTarget { // an error alone is no evidence about the size
		t.size.shrink()
	}
	if t.lease.ctx.Err() != nil {
		return fmt.Errorf("deliver: %w", t.withLeaseCause(err))
	}
	if ctx.Err() != nil {
		return fmt.Errorf("deliver: %w", err) // the end of the tick is not a failure of the batch
	}
	return t.handleFailure(ctx, rows, err)
}

// deliver passes rows to the handler, with a context that ends when the lease is lost.
func (t *tick) deliver(ctx context.Context, rows []Row) error {
	ctx, cancel := t.withLease(ctx)
	defer cancel()
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = EventID(t.config.Name, row)
	}
	err := deliverSafely(ctx, t.config.Handler, Delivery{Poller: t.config.Name, Token: t.lease.acquisition.Token,
		BatchID: batchID(t.config.Name, ids), Rows: rows, EventIDs: ids})
	if err != nil {
		t.counters.add(func(c *Counters) { c.Failed++ })
	}
	return err
}

// commit moves the checkpoint after rows, of which some went to quarantine, and stores this record of a failure.
func (t *tick) commit(rows []Row, quarantined int, failure *Failure) error {
	last := rows[len(rows)-1]
	id := batchID(t.config.Name, []string{EventID(t.config.Name, rows[0]), EventID(t.config.Name, last)})
	doc, err := t.lease.write(func(d *Document) {
		next := Checkpoint{}
		if d.Checkpoint != nil {
			next = *d.Checkpoint
		}
		next.Cursor, next.cursorExtra = last.Cursor, nil
		if d.Checkpoint == nil || next.Metadata.RowsTotal > 0 {
			next.Metadata.RowsTotal += int64(len(rows))
		}
		next.LastBatchID, next.UpdatedAt, next.Metadata.RowCount = id, t.leases.clock.time(), len(rows)
		d.Checkpoint, d.Failure = &next, failure
		q := Quarantine{}
		if t.doc.Quarantine != nil {
			q = *t.doc.Quarantine
		}
		q.Rows, q.Quarantined = q.Rows+len(rows), q.Quarantined+quarantined
		if q.Rows >= t.options.QuarantineWindow {
			q.Rows, q.Quarantined = q.Rows/2, q.Quarantined/2
		}
		d.Quarantine = &q
	})
	if err != nil {
		t.counters.add(func(c *Counters) { c.Unconfirmed += int64(len(rows)) })
		return fmt.Errorf("%w: %s of %d rows, which may be delivered again: %w", ErrCommit, id, len(rows), err)
	}
	t.doc = doc
	t.result.Rows += len(rows)
	t.result.Batches++
	t.result.Quarantined += quarantined
	now := t.leases.clock.time()
	t.counters.add(func(c *Counters) {
		c.Rows += int64(len(rows))
		c.Batches++
		c.Quarantined += int64(quarantined)
		c.LastSuccess, c.Lag = now, -1
		if at, ok := last.Cursor.Time(); ok {
			c.Lag = max(0, now.Sub(at))
		}
	})
	return nil
}

// throttle waits as long as the rate requires, and reports whether to continue.
func (t *tick) throttle(ctx context.Context, rows int, began time.Time) bool {
	if t.options.RowsPerSecond == 0 {
		return ctx.Err() == nil
	}
	wait := time.Duration(rows)*time.Second/time.Duration(t.options.RowsPerSecond) - t.config.Now().Sub(began)
	ctx, cancel := t.withLease(ctx)
	defer cancel()
	return pause(ctx, max(0, min(wait, t.options.Budget-t.config.Now().Sub(t.began))))
}

// clip cuts a text to a number of bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
