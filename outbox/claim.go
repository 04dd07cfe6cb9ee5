package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// claimGrace is how long an expired claim is left alone, because clocks may differ.
	claimGrace = 5 * time.Second
	// claimChunk is the number of messages that one transaction claims. For each, a row is deleted and a row is
	// inserted. A postponed message may have an f- row as well.
	claimChunk    = maxOps / 2
	postponeChunk = maxOps / 3
)

// dueRow is a due p- row and its message.
type dueRow struct {
	entity  tables.Entity
	message message
}

// claimedMessage is a message that this dispatcher has claimed. row is its p- row, whose name no other process knows.
// slot means that its delivery holds a slot of the destination.
type claimedMessage struct {
	message
	row   string
	until time.Time
	// as is the node name of this dispatcher when it claimed.
	as   string
	slot bool
}

// claim claims the messages of these rows for ClaimDuration. The result omits those that other dispatchers claimed
// first. It may return some messages and an error.
func (d *Dispatcher) claim(ctx context.Context, rows []dueRow) (out []*claimedMessage, err error) {
	until := d.o.now().Add(d.o.options.ClaimDuration)
	err = inChunks(claimChunk, rows, func(chunk []dueRow) error {
		batch, err := d.claimChunk(ctx, chunk, until)
		out = append(out, batch...)
		return err
	})
	return out, err
}

// inChunks calls do for rows in chunks of size, and with smaller chunks if a transaction would become too large.
func inChunks[R any](size int, rows []R, do func([]R) error) error {
	for len(rows) > 0 {
		n := min(len(rows), size)
		err := do(rows[:n])
		switch {
		case errors.Is(err, tables.ErrTooLarge) && n > 1:
			size = n / 2
			continue
		case err != nil:
			return err
		}
		rows = rows[n:]
	}
	return nil
}

func (d *Dispatcher) claimChunk(ctx context.Context, rows []dueRow, until time.Time) ([]*claimedMessage, error) {
	as := d.o.node()
	batch := make([]*claimedMessage, 0, len(rows))
	moved := make([]movedRow, 0, len(rows))
	for _, r := range rows {
		h := &claimedMessage{message: r.message, row: pendingRow(until.Add(claimGrace), r.message.ID), until: until, as: as}
		if h.IdempotencyKey == uuid.Nil {
			h.IdempotencyKey = legacyKey(h.TenantID, h.ID)
		}
		batch = append(batch, h)
		// The row keeps its properties under the new name, so the message need not be encoded again.
		props := r.entity.Properties
		props["ClaimedBy"], props["ClaimedUntil"] = as, until
		to := tables.Entity{Key: tables.Key{Partition: r.entity.Partition, Row: h.row}, Properties: props}
		moved = append(moved, movedRow{from: r.entity, to: to})
	}
	ok, err := d.move(ctx, moved)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	if !ok {
		return nil, nil
	}
	return batch, nil
}

// movedRow is a p- row under a new name. The move fails if the row has changed. failed is the row's f- row, if it is
// written, too.
type movedRow struct {
	from, to tables.Entity
	failed   *tables.Op
}

// move moves rows, all or none. ok is false when one of them has changed.
func (d *Dispatcher) move(ctx context.Context, rows []movedRow) (ok bool, err error) {
	ops := make([]tables.Op, 0, 2*len(rows))
	for _, r := range rows {
		ops = append(ops, tables.Delete(r.from.Key, r.from.ETag), tables.Insert(r.to))
		if r.failed != nil {
			ops = append(ops, *r.failed)
		}
	}
	err = d.o.tables.Apply(ctx, d.o.table, ops...)
	switch {
	case err == nil:
		return true, nil
	case !needsReread(err):
		return false, err
	}
	// No other process knows the new names: if one exists, the transaction was applied.
	_, err = d.o.tables.Get(ctx, d.o.table, rows[0].to.Key)
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// postpone moves rows that cannot be tried now to a later time, with a jitter of a second.
func (d *Dispatcher) postpone(ctx context.Context, rows []dueRow, until time.Time) error {
	return inChunks(postponeChunk, rows, func(chunk []dueRow) error {
		moved := make([]movedRow, 0, len(chunk))
		for _, r := range chunk {
			r.message.postpone(until.Add(time.Duration(d.o.random() * float64(time.Second))))
			to := r.message.pendingEntity(pendingRow(r.message.NextAttemptAt, r.message.ID))
			move := movedRow{from: r.entity, to: to}
			if r.message.hasFailed() {
				op := r.message.failedOp()
				move.failed = &op
			}
			moved = append(moved, move)
		}
		if _, err := d.move(ctx, moved); err != nil {
			return fmt.Errorf("put off: %w", err)
		}
		return nil
	})
}
