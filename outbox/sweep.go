package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/tables"
)

// roundInterval is the minimum duration of a round over all tenants.
const roundInterval = time.Hour

// Sweep delivers the due messages of open tenants, which are those that may have pending messages. Call it from a
// timer. It finds work without a wake-up: retries, messages that a crashed process had claimed, lost wake-ups, and
// outdated dead letters. Tenants take turns. Registered tenants with rows from before idempotency keys are backfilled
// (Backfill).
//
// A sweep reads the list of open tenants, and checks one other tenant, in case it was closed by mistake or an older
// version runs concurrently. Each tenant is checked once in a round of an hour, or of one sweep per tenant if that is
// longer.
func (d *Dispatcher) Sweep(ctx context.Context) (Result, error) {
	err := d.round.next(ctx, d.o)
	result, failed := d.sweepOpen(ctx)
	return result, errors.Join(err, failed)
}

// sweepOpen sweeps the open tenants, in the context that Enter returns for the first.
func (d *Dispatcher) sweepOpen(ctx context.Context) (Result, error) {
	work, leave, entered := ctx, func() {}, false
	defer func() { leave() }()
	var (
		group errgroup.Group
		mu    sync.Mutex
		total Result
		errs  []error
	)
	group.SetLimit(sweepWidth)
	for e, err := range tables.All(ctx, d.o.tables, d.o.table, tables.Query{Partition: openPartition}) {
		if err == nil && !entered {
			if work, leave, err = d.begin(ctx); err != nil {
				return Result{}, err
			}
			entered = true
		}
		if err != nil {
			mu.Lock()
			errs = append(errs, fmt.Errorf("sweep: list open tenants: %w", err))
			mu.Unlock()
			break
		}
		t := openTenant{id: e.String("TenantId"), etag: e.ETag, indexed: e.Bool(indexedColumn)}
		group.Go(func() error {
			result, err := d.sweepTenant(work, t)
			mu.Lock()
			defer mu.Unlock()
			total.add(result)
			errs = append(errs, err)
			return nil
		})
	}
	_ = group.Wait() // the functions return none
	return total, errors.Join(append(errs, context.Cause(work))...)
}

// begin checks whether a sweep may work on tenants.
func (d *Dispatcher) begin(ctx context.Context) (work context.Context, leave func(), err error) {
	if d.enter == nil {
		return ctx, func() {}, nil
	}
	if work, leave, err = d.enter(ctx); err != nil {
		return ctx, func() {}, fmt.Errorf("sweep: %w", err)
	}
	return work, leave, nil
}

// sweepTenant delivers the due messages of an open tenant, and closes it when nothing is pending.
func (d *Dispatcher) sweepTenant(ctx context.Context, t openTenant) (Result, error) {
	if !t.indexed {
		if err := d.o.index(ctx, t.id); err != nil {
			return Result{}, err
		}
	}
	g, err := d.o.look(ctx, t.id)
	switch {
	case err != nil:
		return Result{}, err
	case g.due:
		return d.Dispatch(ctx, t.id)
	case g.pending:
		return Result{}, nil
	}
	return Result{}, d.o.closeTenant(ctx, t, g.openings)
}

// index backfills a tenant unless that was done since it was opened.
func (o *Outbox) index(ctx context.Context, tenant string) error {
	row, err := o.tables.Get(ctx, o.table, tenantKey(tenant))
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return fmt.Errorf("sweep tenant %s: %w", partition(tenant), err)
	}
	if err == nil && row.Bool(indexedColumn) {
		return nil
	}
	_, err = NewAdmin(o).backfillAll(ctx, tenant)
	return err
}

// round gives all tenants a turn, open or not.
type round struct {
	mu    sync.Mutex
	left  []knownTenant
	began time.Time
}

// next checks the tenant whose turn it is, and opens it if work is pending.
func (r *round) next(ctx context.Context, o *Outbox) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) == 0 {
		if now := o.now(); r.began.IsZero() || now.Sub(r.began) >= roundInterval {
			all, err := o.allTenants(ctx)
			if err != nil {
				return err
			}
			// Processes that live for less than a round do not all start with the same tenants.
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			r.left, r.began = all, now
		}
		if len(r.left) == 0 {
			return nil
		}
	}
	t := r.left[0]
	r.left = r.left[1:]
	g, err := o.look(ctx, t.id)
	if err == nil && g.pending {
		err = o.markOpen(ctx, t.id, t.indexed)
	}
	return err
}

// allTenants lists all tenants, and opens those that only an older version has used.
func (o *Outbox) allTenants(ctx context.Context) (all []knownTenant, err error) {
	for from, more := "", true; more; more = from != "" {
		list, next, err := o.listTenants(ctx, from, MaxLimit)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if !t.opens {
				err = errors.Join(err, o.adopt(ctx, t))
			}
			all = append(all, t)
		}
		if err != nil {
			return nil, err
		}
		from = next
	}
	return all, nil
}

// adopt opens a tenant of an older version, once.
func (o *Outbox) adopt(ctx context.Context, t knownTenant) error {
	err := o.markOpen(ctx, t.id, t.indexed)
	if err == nil {
		row := tenantRow(t.id, t.indexed)
		row.ETag = t.etag
		err = o.tables.Apply(ctx, o.table, tables.Replace(row))
	}
	if err != nil && !errors.Is(err, tables.ErrPrecondition) && !errors.Is(err, tables.ErrNotFound) {
		return fmt.Errorf("open tenant %s: %w", partition(t.id), err)
	}
	return nil
}
