package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// releaseWidth is the number of tenants that a release works on concurrently.
	releaseWidth = 32
	// clockDifference is how far the clock of the claiming node may be ahead of this one.
	clockDifference = time.Minute
)

// Release makes the claimed messages of a lost node due, sends wake-ups for them, and returns their number. An event
// that the node had delivered and not settled is delivered again, with the same key. Release may be repeated and may
// run concurrently. A node that lives on finds its settlements refused.
//
// ended means that the node's process has surely ended. Otherwise, a started delivery may still run. Messages with an
// OrderKey then wait until that is over, because the next of their key must not arrive before.
func (d *Dispatcher) Release(ctx context.Context, node string, ended bool) (int, error) {
	if node == "" {
		return 0, fmt.Errorf("release: %w: the node has no name", ErrInvalid)
	}
	var total atomic.Int64
	var errs []error
	for from, more := "", true; more && ctx.Err() == nil; more = from != "" {
		list, next, err := d.o.listTenants(ctx, from, sweepWidth)
		if err != nil {
			errs = append(errs, err)
			break
		}
		// A failing tenant does not block the release of the others.
		failures := make([]error, len(list))
		var group errgroup.Group
		group.SetLimit(releaseWidth)
		for i, t := range list {
			group.Go(func() error {
				n, err := d.releaseTenant(ctx, t.id, nodeName(node), ended)
				total.Add(int64(n))
				failures[i] = err
				return nil
			})
		}
		_ = group.Wait() // the functions return none
		errs, from = append(errs, failures...), next
	}
	n := int(total.Load())
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return n, fmt.Errorf("release what node %s has claimed: %w", node, err)
	}
	return n, nil
}

// releaseTenant releases the claims on messages of one tenant. The claims that have not ended are named after their
// end.
func (d *Dispatcher) releaseTenant(ctx context.Context, tenant, node string, ended bool) (released int, err error) {
	now := d.o.now()
	due, ordered := now, now
	if !ended {
		ordered = now.Add(d.o.options.DeliveryTimeout + claimGrace)
	}
	q := tables.Query{
		Partition: partition(tenant),
		From:      pendingPrefix + digits(now.Add(time.Microsecond)),
		To:        pendingPrefix + digits(now.Add(d.o.options.ClaimDuration+claimGrace+clockDifference)),
		Where:     map[string]any{"ClaimedBy": node},
		Limit:     scanLimit,
	}
	later := false
	for more := true; more; more = q.Continuation != "" {
		page, err := d.o.tables.Query(ctx, d.o.table, q)
		if err != nil {
			return released, fmt.Errorf("tenant %s: %w", q.Partition, err)
		}
		var moved []movedRow
		for _, e := range page.Entities {
			at := due
			if e.String("OrderKey") != "" {
				at = ordered
			}
			row := pendingRow(at, idOf(e))
			if row >= e.Row {
				continue // its claim ends before
			}
			later = later || at.After(now)
			moved = append(moved, movedRow{from: e, to: unclaimed(e, row)})
		}
		n, err := d.moveEach(ctx, moved)
		if released += n; err != nil {
			return released, fmt.Errorf("tenant %s: %w", q.Partition, err)
		}
		q.Continuation = page.Next
	}
	if released > 0 {
		d.o.wake.notify(ctx, tenant)
		d.o.logger.InfoContext(ctx, "outbox claims released", "node", node, "tenantId", tenant, "messages", released)
	}
	if later {
		d.o.wake.send(ctx, tenant, ordered.Sub(now))
	}
	return released, nil
}

// unclaimed returns a p- row under another name, without its claim.
func unclaimed(e tables.Entity, row string) tables.Entity {
	props := map[string]any{}
	for name, v := range e.Properties {
		if name != "ClaimedBy" && name != "ClaimedUntil" {
			props[name] = v
		}
	}
	return tables.Entity{Key: tables.Key{Partition: e.Partition, Row: row}, Properties: props}
}

// moveEach moves the unchanged rows, and returns their number.
func (d *Dispatcher) moveEach(ctx context.Context, rows []movedRow) (moved int, err error) {
	err = inChunks(claimChunk, rows, func(chunk []movedRow) error {
		ok, err := d.move(ctx, chunk)
		if err != nil || ok {
			moved += boolToInt(ok) * len(chunk)
			return err
		}
		for i := range chunk { // one of them has changed
			ok, err := d.move(ctx, chunk[i:i+1])
			if err != nil {
				return err
			}
			moved += boolToInt(ok)
		}
		return nil
	})
	return moved, err
}
