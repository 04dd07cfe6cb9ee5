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

// Sweeps look at open tenants only: those with a row under "~open". That row must be there whenever a tenant has a p-, w- or o-
// row, and it is in another partition, so no transaction can write both. Therefore a process opens a tenant before it adds
// the first of these rows: it inserts an n- row of its own in the tenant's partition, and then writes the row under "~open".
// Whatever adds a p- or o- row to a tenant that may have none replaces that n- row in the same transaction, which fails if it is
// gone.
//
// A sweep closes a tenant in the reverse order: it reads the row under "~open", looks for n-, o- and p- rows, and when there are n-
// rows only it deletes these, and then the row under "~open", each unless it has changed since it was read. Nothing can be added
// meanwhile: with an n- row that was seen, the addition changes it, so that the sweep fails, or comes too late and fails. With one
// that was not seen, its process writes the row under "~open" later than it was read: either the sweep fails to delete it, or it is
// there anew.

const (
	// quietAfter is for how long nothing must have been added to a tenant before a sweep closes it. It spares tenants that are
	// busy the opening; a process does not count on an n- row that it has not used for so long.
	quietAfter = time.Minute
	// openTries bounds how often an addition opens a tenant anew, because sweeps have closed it.
	openTries = 5
	// maxOpened is how many tenants a process remembers to have opened before it drops those that are quiet.
	maxOpened = 10_000
	// lookLimit is how many rows a look reads at once.
	lookLimit = 100

	usedColumn = "UsedAt"
)

// openings are the n- rows of this process.
type openings struct {
	mu  sync.Mutex
	all map[string]*opening
}

// opening is the n- row of one tenant. busy is taken by whoever looks at the rest of it.
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

// applyOpen applies operations that add p-, w- or o- rows to a tenant, which it opens first.
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

// open returns the n- row of this process in a tenant, and opens the tenant if there is none that was used lately.
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
	// A name of its own each time: a request that storage carries out late brings back no row that anybody uses.
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

// forgetOpening makes the next addition open the tenant anew, unless somebody has done that already.
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

// glance is what a look at an open tenant has found: n- rows, whether anything is pending or owed, and whether now.
type glance struct {
	openings     []tables.Entity
	pending, due bool
}

// look reads the n- rows of a tenant and the first row behind them, of one that owes or that is due first.
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

// closeTenant closes an open tenant that is quiet, of which a look has found that nothing is pending.
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

// inUse is nil for an error that says that somebody has opened or closed the tenant meanwhile: the next sweep sees to it.
func inUse(err error) error {
	if err == nil || errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrPrecondition) {
		return nil
	}
	return fmt.Errorf("close tenant: %w", err)
}
