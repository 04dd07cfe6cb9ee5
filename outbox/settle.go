package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// settleTries bounds the tries to write a settlement; the end of the claim bounds them, too.
	settleTries = 8
	settlePause = 20 * time.Millisecond
	// maxOps is the most operations of a transaction.
	maxOps = 100
)

// settle writes settlements in as few transactions as possible. The error covers those that it could not write: these
// messages stay claimed until the claim ends, and are then delivered again.
func (d *Dispatcher) settle(ctx context.Context, list []*settlement) error {
	var errs []error
	var batch []*settlement
	var ops []tables.Op
	size := 0
	flush := func() {
		if len(batch) > 0 {
			errs = append(errs, d.settleBatch(ctx, batch, ops))
			batch, ops, size = nil, nil, 0
		}
	}
	alone := d.alone(ctx, list)
	for _, s := range list {
		leave, ok := alone[s]
		if s.h.OrderKey != "" && s.ends() && !ok {
			errs = append(errs, d.settleOne(ctx, s))
			continue
		}
		more := d.ops(s)
		if ok {
			more = append(more, leave)
		}
		if n := s.h.requestSize(); len(ops)+len(more) > maxOps || size+n > maxRequest {
			flush()
		}
		batch, ops, size = append(batch, s), append(ops, more...), size+s.h.requestSize()
	}
	flush()
	return errors.Join(errs...)
}

// alone finds, with one query, ending messages without successors, and returns the operations on their order keys. It
// is for several messages: for a single one, the row of its key is read as well.
func (d *Dispatcher) alone(ctx context.Context, list []*settlement) map[*settlement]tables.Op {
	ending := map[string]*settlement{}
	for _, s := range list {
		if s.h.OrderKey != "" && s.ends() {
			ending[orderRow(s.h.OrderKey)] = s
		}
	}
	if len(ending) < 2 {
		return nil
	}
	page, err := d.o.tables.Query(ctx, d.o.table, tables.Query{Partition: partition(list[0].h.TenantID), From: orderPrefix, To: endOf(orderPrefix), Limit: scanLimit, Select: []string{"Next"}})
	if err != nil {
		return nil // each is settled separately
	}
	found := map[*settlement]tables.Op{}
	for _, e := range page.Entities {
		if s := ending[e.Row]; s != nil && e.Int("Next") == 1 {
			found[s] = tables.Delete(e.Key, e.ETag)
		}
	}
	return found
}

// ends reports whether the message is no longer pending.
func (s *settlement) ends() bool { return s.kind != kindPostponed && s.kind != kindFailed }

// ops returns the operations of a settlement, without those on its order key. The deletion of the claimed row is the
// fence: no other process knows its name, and a dispatcher that has taken the claim over has deleted it.
func (d *Dispatcher) ops(s *settlement) []tables.Op {
	h := s.h
	ops := []tables.Op{tables.Delete(tables.Key{Partition: partition(h.TenantID), Row: h.row}, "")}
	if h.owed != nil && (s.kind == kindFailed || s.kind == kindEnded) {
		ops = append(ops, h.owedOp())
	}
	switch s.kind {
	case kindPostponed:
		ops = append(ops, tables.Insert(h.pendingEntity(s.next)))
		if s.hadFailed {
			ops = append(ops, h.failedOp())
		}
		return ops
	case kindFailed:
		return append(ops, tables.Replace(h.entity()), tables.Insert(h.pendingEntity(s.next)),
			h.failedOp())
	case kindEnded:
		h.indexRow = endRow(&h.message)
		ops = append(ops, tables.Replace(h.entity()), tables.Upsert(h.listEntity(h.indexRow)))
	case kindStale:
		ops = append(ops, tables.Upsert(h.listEntity(endRow(&h.message))))
	case kindMissing:
	}
	if s.hadFailed {
		ops = append(ops, tables.Delete(tables.Key{Partition: partition(h.TenantID), Row: failedRow(h.CreatedAt, h.ID)}, ""))
	}
	return ops
}

// endRow returns the key of the index row of an ended message.
func endRow(m *message) string {
	if m.Status == StatusDead {
		return deadPrefix + inverted(m.DeadAt) + "-" + suffix(m.ID)
	}
	return processedPrefix + inverted(m.ProcessedAt) + "-" + suffix(m.ID)
}

// settleBatch writes a batch in one transaction. If that fails, each settlement is written separately.
func (d *Dispatcher) settleBatch(ctx context.Context, batch []*settlement, ops []tables.Op) error {
	err := d.o.tables.Apply(ctx, d.o.table, ops...)
	if err != nil && needsReread(err) && d.written(ctx, batch[0]) {
		err = nil
	}
	if err == nil {
		for _, s := range batch {
			d.reportSettled(ctx, s)
		}
		return nil
	}
	var errs []error
	for _, s := range batch {
		errs = append(errs, d.settleOne(ctx, s))
	}
	return errors.Join(errs...)
}

// settleOne writes one settlement, and checks the claim when it cannot.
func (d *Dispatcher) settleOne(ctx context.Context, s *settlement) (err error) {
	for try := range settleTries {
		if try > 0 {
			pause(ctx, settlePause<<(try-1))
		}
		ops := d.ops(s)
		if s.ends() {
			var more []tables.Op
			if more, s.promoted, err = d.o.dequeue(ctx, &s.h.message); err != nil {
				continue
			}
			ops = append(ops, more...)
		}
		err = d.o.tables.Apply(ctx, d.o.table, ops...)
		switch {
		case err == nil:
			d.reportSettled(ctx, s)
			return nil
		case !needsReread(err):
			continue
		case d.written(ctx, s):
			d.reportSettled(ctx, s)
			return nil
		case d.claimLost(ctx, s):
			s.lost = true
			d.o.observe.Lost()
			d.o.logger.WarnContext(ctx, "outbox claim lost before it was settled: the message may be delivered twice", "eventId", s.h.ID, "eventKey", s.h.IdempotencyKey, "tenantId", s.h.TenantID)
			return nil
		case missing(err, s.h.key()):
			s.kind = kindMissing
		}
	}
	if err == nil {
		err = ErrBusy
	}
	s.lost = true
	return fmt.Errorf("settle message %s: %w", s.h.ID, err)
}

// written reports whether a settlement is stored, after a write with an inconclusive answer.
func (d *Dispatcher) written(ctx context.Context, s *settlement) bool {
	switch s.kind {
	case kindPostponed:
		_, err := d.o.tables.Get(ctx, d.o.table, tables.Key{Partition: partition(s.h.TenantID), Row: s.next})
		return err == nil
	case kindFailed, kindEnded:
		e, err := d.o.tables.Get(ctx, d.o.table, s.h.key())
		return err == nil && e.String("Settlement") == s.h.settlement
	case kindStale, kindMissing:
		return d.claimLost(ctx, s)
	}
	return false
}

// claimLost reports whether the claimed row is gone.
func (d *Dispatcher) claimLost(ctx context.Context, s *settlement) bool {
	_, err := d.o.tables.Get(ctx, d.o.table, tables.Key{Partition: partition(s.h.TenantID), Row: s.h.row})
	return errors.Is(err, tables.ErrNotFound)
}

// missing reports whether a write failed because this row does not exist.
func missing(err error, key tables.Key) bool {
	var op *tables.OpError
	return errors.Is(err, tables.ErrNotFound) && errors.As(err, &op) && op.Key == key
}

// reportSettled logs and counts a settlement.
func (d *Dispatcher) reportSettled(ctx context.Context, s *settlement) {
	switch {
	case s.kind == kindFailed:
		d.o.logFail(ctx, &s.h.message)
	case s.kind != kindEnded:
	case s.h.Status == StatusDead:
		d.o.logFail(ctx, &s.h.message)
		d.o.window.died(s.h.DeadAt)
		d.o.observe.Settled(StatusDead, s.h.DeadAt.Sub(s.h.CreatedAt))
	default:
		d.o.logSuccess(ctx, &s.h.message)
		d.o.window.processed(s.h.ProcessedAt)
		d.o.observe.Settled(StatusProcessed, s.h.ProcessedAt.Sub(s.h.CreatedAt))
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
