package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// DamageError says which orchestration cannot be read, and wraps why: errors.Is finds ErrCorrupt.
type DamageError struct {
	ID    string
	cause error
}

// Error is that of the cause, which names the orchestration and the row.
func (e *DamageError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.cause }

// loadWith is load, with the status. What is damaged is a *DamageError.
func (j *journal) loadWith(ctx context.Context, id string) ([]storedExecution, tables.Entity, error) {
	all, status, err := j.loadStored(ctx, id)
	if errors.Is(err, ErrCorrupt) {
		err = &DamageError{ID: id, cause: err}
	}
	return all, status, err
}

// Damage is an orchestration that somebody met and could not read.
type Damage struct {
	// ID is the orchestration's, "" where the partition's name is none that this program gives.
	ID        string
	Partition string
	// Reason is the error, which names the row. Since is when it was met first.
	Reason   string
	Since    time.Time
	reported bool
}

// What is damaged has a row each in the index, from when it is met until a sweep finds it mended, or gone.
const (
	damagePartition = "damaged"
	columnPartition = "Partition"
	columnReason    = "Reason"
	columnTold      = "Told"
	// maxReason bounds the reason that is kept, in bytes.
	maxReason = 4 << 10
)

func damageKey(partition string) tables.Key {
	return tables.Key{Partition: damagePartition, Row: hashOf([]byte(partition))[:32]}
}

func (d Damage) row() tables.Entity {
	return tables.Entity{Key: damageKey(d.Partition), Properties: map[string]any{columnID: d.ID, columnPartition: d.Partition, columnReason: d.Reason,
		columnSince: d.Since, columnTold: d.reported}}
}

func damageOf(e tables.Entity) Damage {
	return Damage{ID: e.String(columnID), Partition: e.String(columnPartition), Reason: e.String(columnReason), Since: e.Time(columnSince), reported: e.Bool(columnTold)}
}

// Damages lists the orchestrations that were met and could not be read, up to limit (1 to 1,000); more says that there are
// others. It costs a query. Without queues, nobody keeps them.
func (r *Runtime) Damages(ctx context.Context, limit int) (found []Damage, more bool, err error) {
	if r.config.Queues == nil {
		return nil, false, nil
	}
	page, err := r.config.Tables.Query(ctx, r.config.IndexTable, tables.Query{Partition: damagePartition, Limit: limit})
	if err != nil {
		return nil, false, fmt.Errorf("list of damaged orchestrations: %w", err)
	}
	for _, e := range page.Entities {
		found = append(found, damageOf(e))
	}
	return found, page.Next != "", nil
}

// Readable says whether an orchestration can be read: nil, ErrNotFound, ErrCorrupt, ErrNewerSchema, or what storage said.
func (r *Runtime) Readable(ctx context.Context, id string) error {
	_, err := r.loadKnown(ctx, id)
	return err
}

// noteDamage takes note of damage that an error tells of, if it does: in the counts, in the log, in the index, and by
// Config.Damaged, the last three once. It gives no error: whoever met it has one.
func (r *Runtime) noteDamage(ctx context.Context, err error) {
	damaged, ok := errors.AsType[*DamageError](err)
	if !ok {
		return
	}
	r.recordDamage(ctx, Damage{ID: damaged.ID, Partition: tables.EscapeKey(damaged.ID), Reason: damaged.Error()})
}

// noteUnnamedDamage is met for a partition that is no orchestration's.
func (r *Runtime) noteUnnamedDamage(ctx context.Context, partition string, cause error) {
	r.recordDamage(ctx, Damage{Partition: partition, Reason: fmt.Sprintf("the partition %s has no name that this program gives: %v", partition, cause)})
}

func (r *Runtime) recordDamage(ctx context.Context, d Damage) {
	r.count(func(c *Counts) { c.Damaged++ })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if d.Reason = cleanText(d.Reason); len(d.Reason) > maxReason {
		d.Reason = cleanText(d.Reason[:maxReason])
	}
	d.Since = r.config.Now().UTC().Truncate(time.Microsecond)
	err := r.indexDamage(ctx, d)
	if err != nil {
		r.config.Log.Warn("damage could not be noted: it is when it is met again", "orchestration", d.ID, "partition", d.Partition, "reason", err.Error())
	}
}

// indexDamage keeps damage and tells of it. What is known already is not told again.
func (r *Runtime) indexDamage(ctx context.Context, d Damage) error {
	if r.config.Queues == nil {
		r.warn(d)
		return nil
	}
	known, err := r.config.Tables.Get(ctx, r.config.IndexTable, damageKey(d.Partition))
	switch {
	case err == nil:
		d = damageOf(known)
	case !errors.Is(err, tables.ErrNotFound):
		return err
	default:
		err := r.config.Tables.Apply(ctx, r.config.IndexTable, tables.Insert(d.row()))
		if errors.Is(err, tables.ErrExists) {
			return nil // another process met it at this moment, and tells
		}
		if err != nil {
			return err
		}
		r.warn(d)
	}
	return r.reportDamage(ctx, d)
}

func (r *Runtime) warn(d Damage) {
	r.config.Log.Warn("an orchestration cannot be read: docs/recovery.md says what to do", "orchestration", d.ID, "partition", d.Partition, "reason", d.Reason)
}

// reportDamage calls Config.Damaged until it has taken the damage.
func (r *Runtime) reportDamage(ctx context.Context, d Damage) error {
	if d.reported || r.config.Damaged == nil {
		return nil
	}
	if err := r.config.Damaged(ctx, d); err != nil {
		return err
	}
	d.reported = true
	err := r.config.Tables.Apply(ctx, r.config.IndexTable, tables.Replace(d.row()))
	if errors.Is(err, tables.ErrNotFound) {
		return nil // it is mended
	}
	return err
}

// isDamaged says that an orchestration is known as damaged.
func (r *Runtime) isDamaged(ctx context.Context, id string) (bool, error) {
	_, err := r.config.Tables.Get(ctx, r.config.IndexTable, damageKey(tables.EscapeKey(id)))
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// clearDamage takes an orchestration out of those that are damaged.
func (r *Runtime) clearDamage(ctx context.Context, partition string) error {
	if r.config.Queues == nil {
		return nil
	}
	err := r.config.Tables.Apply(ctx, r.config.IndexTable, tables.Delete(damageKey(partition), ""))
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return fmt.Errorf("list of damaged orchestrations: %w", err)
	}
	return nil
}
