package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/tables"
)

// backfillChunk is the number of rows that one transaction backfills: each is changed, and gets at most two index rows.
// One more operation keeps the tenant open.
const backfillChunk = 33

// BackfillProgress is the result of one slice of a backfill.
type BackfillProgress struct {
	// Scanned counts the examined messages, Assigned those that got a key, and Indexed those that got index rows.
	Scanned, Assigned, Indexed int
	// Continuation is for the next slice; "" when the tenant is done.
	Continuation string
}

// Backfill completes rows from before idempotency keys: it adds a key, a schema version, and the index rows by which
// dispatchers and lists find them (outbox document, "Backfill Strategy"). It registers the tenant and examines limit
// rows (1 to MaxLimit; 0 means MaxLimit) after continuation. It may be repeated, interrupted and run concurrently with
// all other operations. Rows of a newer schema are left alone. The errors are ErrInvalid, ErrToken and those of the
// stores.
func (a *Admin) Backfill(ctx context.Context, tenant, continuation string, limit int) (BackfillProgress, error) {
	if limit == 0 {
		limit = MaxLimit
	}
	err := checkID("tenant id", tenant, true)
	if limit < 1 || limit > MaxLimit {
		err = errors.Join(err, fmt.Errorf("%w: limit %d: use 1 to %d", ErrInvalid, limit, MaxLimit))
	}
	if continuation != "" && (!strings.HasPrefix(continuation, messagePrefix) || continuation != legalRowKey(continuation)) {
		err = errors.Join(err, fmt.Errorf("%w: it is damaged", ErrToken))
	}
	if err == nil {
		_, err = a.o.register(ctx, tenant)
	}
	if err != nil {
		return BackfillProgress{}, fmt.Errorf("backfill: %w", err)
	}
	progress, err := a.backfill(ctx, tenant, continuation, limit)
	if err == nil && progress.Continuation == "" {
		err = a.o.markIndexed(ctx, tenant)
	}
	if err != nil {
		return progress, fmt.Errorf("backfill tenant %s: %w", partition(tenant), err)
	}
	return progress, nil
}

// NextTenant returns the first tenant with rows after another one, in the order of their escaped ids; "" is before
// all. It also finds tenants that no producer has registered. ok is false at the end. It costs a query or two,
// however many rows exist.
func (a *Admin) NextTenant(ctx context.Context, after string) (tenant string, ok bool, err error) {
	// No key is between a key and the same key with a blank at its end.
	s := tables.Scan{AnyRow: true, FromPartition: partition(after) + " ", Limit: 1, Select: []string{"TenantId"}}
	for {
		page, err := a.o.tables.Scan(ctx, a.o.table, s)
		if err != nil {
			return "", false, fmt.Errorf("next tenant after %s: %w", partition(after), err)
		}
		s.Continuation = page.Next
		for _, e := range page.Entities {
			if tenant, err := tables.UnescapeKey(e.Partition); err == nil && partition(tenant) == e.Partition {
				return tenant, true, nil
			}
			s.FromPartition, s.Continuation = e.Partition+" ", "" // one of the outbox itself
			page.Next = e.Partition
		}
		if page.Next == "" {
			return "", false, nil
		}
	}
}

// backfillAll runs all slices of a backfill.
func (a *Admin) backfillAll(ctx context.Context, tenant string) (total BackfillProgress, err error) {
	for {
		p, err := a.Backfill(ctx, tenant, total.Continuation, MaxLimit)
		total.Scanned += p.Scanned
		total.Assigned += p.Assigned
		total.Indexed += p.Indexed
		total.Continuation = p.Continuation
		if err != nil || p.Continuation == "" {
			return total, err
		}
	}
}

func (a *Admin) backfill(ctx context.Context, tenant, after string, limit int) (progress BackfillProgress, err error) {
	q := tables.Query{Partition: partition(tenant), From: messagePrefix, To: endOf(messagePrefix), Limit: limit}
	if after != "" {
		q.From = after + " "
	}
	page, err := a.o.tables.Query(ctx, a.o.table, q)
	if err != nil {
		return progress, err
	}
	var old []tables.Entity
	for _, e := range page.Entities {
		if e.Int("SchemaVersion") == 0 {
			old = append(old, e)
		}
	}
	for len(old) > 0 {
		n := min(len(old), backfillChunk)
		if err := a.backfillRows(ctx, tenant, old[:n], &progress); err != nil {
			return progress, err
		}
		old = old[n:]
	}
	progress.Scanned = len(page.Entities)
	if page.Next != "" {
		progress.Continuation = after
		if n := len(page.Entities); n > 0 {
			progress.Continuation = page.Entities[n-1].Row
		}
	}
	return progress, nil
}

// backfillRows changes rows in one transaction or, after a concurrent change, each in its own.
func (a *Admin) backfillRows(ctx context.Context, tenant string, rows []tables.Entity, progress *BackfillProgress) error {
	var ops []tables.Op
	assigned := 0
	for _, e := range rows {
		more, gotKey, err := a.backfillRow(e)
		if err != nil {
			a.o.logger.ErrorContext(ctx, "outbox message left alone by the backfill", "error", err)
			continue
		}
		if gotKey {
			assigned++
		}
		ops = append(ops, more...)
	}
	if len(ops) == 0 {
		return nil
	}
	err := a.o.applyOpen(ctx, tenant, ops...)
	switch {
	case err == nil:
		progress.Assigned += assigned
		progress.Indexed += len(rows)
		return nil
	case len(rows) == 1 && errors.Is(err, tables.ErrOutcomeUnknown):
		return err
	case len(rows) == 1 && needsReread(err):
		return nil // the row has changed, so it is backfilled already or by a later slice
	case len(rows) == 1 || !needsReread(err) && !errors.Is(err, tables.ErrTooLarge):
		return err
	}
	for i := range rows {
		if err := a.backfillRows(ctx, tenant, rows[i:i+1], progress); err != nil {
			return err
		}
	}
	return nil
}

// backfillRow returns the operations for one old row.
func (a *Admin) backfillRow(e tables.Entity) (ops []tables.Op, gotKey bool, err error) {
	m, err := decode(e)
	if err != nil {
		return nil, false, err
	}
	if gotKey = m.IdempotencyKey == uuid.Nil; gotKey {
		m.IdempotencyKey = legacyKey(m.TenantID, m.ID)
	}
	now := a.o.now()
	if m.CreatedAt.IsZero() {
		m.CreatedAt = now
	}
	m.PayloadSize = int64(len(m.Payload))
	m.settlement = nonce()
	if m.Status == StatusPending {
		m.NextAttemptAt = now
		m.indexRow = pendingRow(now, m.ID)
		index := m.pendingEntity(m.indexRow)
		// Without the payload, the dispatcher reads the m- row again, and detects a delivery by an older program.
		dropPayload(index.Properties)
		ops = append(ops, tables.Insert(index))
		if m.RetryCount > 0 {
			ops = append(ops, tables.Upsert(m.listEntity(failedRow(m.CreatedAt, m.ID))))
		}
	} else {
		m.IsProcessed = true
		if m.ProcessedAt.IsZero() {
			m.ProcessedAt = m.CreatedAt
		}
		m.indexRow = endRow(&m)
		ops = append(ops, tables.Upsert(m.listEntity(m.indexRow)))
	}
	row := m.entity()
	row.ETag = e.ETag
	return append(ops, tables.Replace(row)), gotKey, nil
}
