package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// Sweeps process open tenants only: those with a row under "~open". That row must exist whenever a tenant has a p-, w-
// or o- row, and it is in another partition, so no transaction can write both. Therefore a process opens a tenant
// before it adds the first of these rows. It inserts its own n- row in the tenant's partition, and then writes the row
// under "~open". An operation that adds a p- or o- row to a tenant that may have none replaces that n- row in the same
// transaction, which fails if the n- row is gone.
//
// A sweep closes a tenant in the reverse order. It reads the row under "~open", and searches n-, o- and p- rows. If it
// finds only n- rows, it deletes these, and then the row under "~open", each unless it has changed since it was read.
// No concurrent addition is missed. If the sweep has seen the process's n- row, the addition changes it, so that the
// sweep fails, or the addition comes too late and fails. If the sweep has not seen it, the process writes the row under
// "~open" after the sweep has read it. Either the sweep fails to delete it, or it is written again.

const (
	// quietAfter is how long a tenant must be without additions before a sweep closes it. It spares busy tenants the
	// opening; a process does not rely on an n- row that it has not used for this long.
	quietAfter = time.Minute
	// openTries bounds how often an addition reopens a tenant that sweeps have closed.
	openTries = 5
	// maxOpened is the number of opened tenants that a process remembers before it drops quiet ones.
	maxOpened = 10_000
	// lookLimit is the number of rows that a look reads together.
	lookLimit = 100

	usedColumn = "UsedAt"
)

// openings are the n- rows of this process.
type openings struct {
	mu  sync.Mutex
	all map[string]*opening
}

// opening is the n- row of one tenant. busy guards the other fields.
type opening struct {
	busy   chan struct{}
	row    tables.Key // the zero Key: none
	usedAt time.Time
}

// of returns the opening of a tenant.
func (s *openings) of(tenant string, now time.Time) *opening {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.all[tenant]
	if o == nil {
		s.prune(now)
		o = &opening{busy: make(chan struct{}, 1)}
		s.all[tenant] = o
	}
	return o
}

func (s *openings) prune(now time.Time) {
	if s.all == nil {
		s.all = map[string]*opening{}
	}
	if len(s.all) < maxOpened {
		return
	}
	for tenant, o := range s.all {
		select {
		case o.busy <- struct{}{}:
			if now.Sub(o.usedAt) > quietAfter {
				delete(s.all, tenant)
			}
			<-o.busy
		default:
		}
	}
}

// applyOpen opens a tenant and applies operations that add p-, w- or o- rows to it.
func (o *Outbox) applyOpen(ctx context.Context, tenant string, ops ...tables.Op) error {
	for range openTries {
		row, err := o.open(ctx, tenant)
		if err != nil {
			return err
		}
		use := tables.Replace(tables.Entity{Key: row, Properties: map[string]any{usedColumn: o.now()}})
		err = o.tables.Apply(ctx, o.table, slices.Concat(ops, []tables.Op{use})...)
		if err == nil || !missing(err, row) {
			return err
		}
		if err := o.forgetOpening(ctx, tenant, row); err != nil {
			return err
		}
	}
	return ErrBusy
}

// open returns the n- row of this process in a tenant, and opens the tenant without a recently used row.
func (o *Outbox) open(ctx context.Context, tenant string) (tables.Key, error) {
	now := o.now()
	mine := o.openings.of(tenant, now)
	select {
	case mine.busy <- struct{}{}:
	case <-ctx.Done():
		return tables.Key{}, ctx.Err()
	}
	defer func() { <-mine.busy }()
	if mine.row == (tables.Key{}) || now.Sub(mine.usedAt) > quietAfter {
		row, err := o.openNow(ctx, tenant, now)
		if err != nil {
			return tables.Key{}, err
		}
		mine.row = row
	}
	mine.usedAt = now
	return mine.row, nil
}

func (o *Outbox) openNow(ctx context.Context, tenant string, now time.Time) (tables.Key, error) {
	indexed, err := o.register(ctx, tenant)
	if err != nil {
		return tables.Key{}, err
	}
	// The name is new each time: a late request in storage restores no row that is in use.
	row := tables.Key{Partition: partition(tenant), Row: openPrefix + nonce()}
	err = o.tables.Apply(ctx, o.table, tables.Insert(tables.Entity{Key: row, Properties: map[string]any{usedColumn: now}}))
	if err == nil {
		err = o.markOpen(ctx, tenant, indexed)
	}
	if err != nil {
		return tables.Key{}, fmt.Errorf("open tenant %s: %w", row.Partition, err)
	}
	return row, nil
}

// markOpen writes the row of an open tenant.
func (o *Outbox) markOpen(ctx context.Context, tenant string, indexed bool) error {
	row := tables.Entity{Key: openKey(tenant), Properties: map[string]any{"TenantId": tenant, indexedColumn: indexed}}
	return o.tables.Apply(ctx, o.table, tables.Upsert(row))
}

func openKey(tenant string) tables.Key {
	return tables.Key{Partition: openPartition, Row: partition(tenant)}
}

// forgetOpening makes the next addition open the tenant again, unless that was done already.
func (o *Outbox) forgetOpening(ctx context.Context, tenant string, row tables.Key) error {
	mine := o.openings.of(tenant, o.now())
	select {
	case mine.busy <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-mine.busy }()
	if mine.row == row {
		mine.row = tables.Key{}
	}
	return nil
}

// openTenant is one row under "~open".
type openTenant struct {
	id, etag string
	indexed  bool
}

// glance is the result of a look at an open tenant: its n- rows, whether work is pending or owed, and whether any is
// due now.
type glance struct {
	openings     []tables.Entity
	pending, due bool
}

// look reads the n- rows of a tenant and the first row after them, which is owed or due first.
func (o *Outbox) look(ctx context.Context, tenant string) (g glance, err error) {
	q := tables.Query{Partition: partition(tenant), From: openPrefix, To: endOf(pendingPrefix), Limit: lookLimit, Select: []string{usedColumn}}
	due := pendingPrefix + digits(o.now().Add(time.Microsecond))
	for e, err := range tables.All(ctx, o.tables, o.table, q) {
		switch {
		case err != nil:
			return glance{}, fmt.Errorf("look at tenant %s: %w", q.Partition, err)
		case e.Row >= owedPrefix:
			g.pending, g.due = true, e.Row < due
			return g, nil
		}
		g.openings = append(g.openings, e)
	}
	return g, nil
}

// closeTenant closes a quiet open tenant for which a look has found no pending work.
func (o *Outbox) closeTenant(ctx context.Context, t openTenant, openings []tables.Entity) error {
	now := o.now()
	for _, e := range openings {
		if now.Sub(e.Time(usedColumn)) <= quietAfter {
			return nil
		}
	}
	for rows := range slices.Chunk(openings, maxOps) {
		ops := make([]tables.Op, 0, len(rows))
		for _, e := range rows {
			ops = append(ops, tables.Delete(e.Key, e.ETag))
		}
		if err := o.tables.Apply(ctx, o.table, ops...); err != nil {
			return inUse(err)
		}
	}
	return inUse(o.tables.Apply(ctx, o.table, tables.Delete(openKey(t.id), t.etag)))
}

// inUse returns nil for an error of a concurrent opening or closing of the tenant: the next sweep handles it.
func inUse(err error) error {
	if err == nil || errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrPrecondition) {
		return nil
	}
	return fmt.Errorf("close tenant: %w", err)
}
