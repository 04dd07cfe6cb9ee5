package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/tables"
)

// DamageError reports that an orchestration cannot be read, and wraps the cause: errors.Is finds ErrCorrupt.
type DamageError struct {
	ID    string
	cause error
}

// Error returns the text of the cause, which names the orchestration and the row.
func (e *DamageError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.cause }

// loadWith is load, with the status row. Damage is reported as a *DamageError.
func (j *journal) loadWith(ctx context.Context, id string) ([]storedExecution, tables.Entity, error) {
	all, status, err := j.loadStored(ctx, id)
	if errors.Is(err, ErrCorrupt) {
		err = &DamageError{ID: id, cause: err}
	}
	return all, status, err
}

// Damage is an orchestration that could not be read.
type Damage struct {
	// ID is the id of the orchestration; "" when the partition's name is not one of this program's.
	ID        string
	Partition string
	// Reason is the error text, which names the row. Since is when the damage was first noticed.
	Reason   string
	Since    time.Time
	reported bool
}

// The index has one row for every damaged orchestration, from when the damage is noticed until a sweep finds that the
// orchestration was repaired or is gone.
const (
	damagePartition = "damaged"
	columnPartition = "Partition"
	columnReason    = "Reason"
	columnTold      = "Told"
	// maxReason bounds the stored reason, in bytes.
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

// Damages lists the orchestrations that could not be read, up to limit (1 to 1,000); more reports that the list is
// longer. It costs one query. Without queues the index does not exist, and the list is empty.
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

// Readable reports whether an orchestration can be read: nil, ErrNotFound, ErrCorrupt, ErrNewerSchema, or an error of
// storage.
func (r *Runtime) Readable(ctx context.Context, id string) error {
	_, err := r.loadKnown(ctx, id)
	return err
}

// noteDamage records the damage that an error reports, if it does. Every call counts it; the log, the index and
// Config.Damaged get it once. It returns no error, because its caller has one already.
func (r *Runtime) noteDamage(ctx context.Context, err error) {
	damaged, ok := errors.AsType[*DamageError](err)
	if !ok {
		return
	}
	r.recordDamage(ctx, Damage{ID: damaged.ID, Partition: tables.EscapeKey(damaged.ID), Reason: damaged.Error()})
}

// noteUnnamedDamage is noteDamage for a partition that belongs to no orchestration.
func (r *Runtime) noteUnnamedDamage(ctx context.Context, partition string, cause error) {
	r.recordDamage(ctx, Damage{Partition: partition, Reason: fmt.Sprintf("the partition %s has no name that this program gives: %v", partition, cause)})
}

func (r *Runtime) recordDamage(ctx context.Context, d Damage) {
	r.count(func(c *Counts) { c.Damaged++ })
	ctx, cancel := outage.Finish(ctx, storeTimeout)
	defer cancel()
	if d.Reason = redact.Text(cleanText(d.Reason)); len(d.Reason) > maxReason {
		d.Reason = cleanText(d.Reason[:maxReason])
	}
	d.Since = r.config.Now().UTC().Truncate(time.Microsecond)
	err := r.indexDamage(ctx, d)
	if err != nil {
		r.config.Log.WarnContext(ctx, "damage could not be recorded: it will be when it is noticed again", "orchestrationId", d.ID, "partition", d.Partition, "error", err.Error())
	}
}

// indexDamage adds damage to the index and reports it. Damage that is in the index is not logged again.
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
			return nil // another process noticed the damage at the same moment, and reports it
		}
		if err != nil {
			return err
		}
		r.warn(d)
	}
	return r.reportDamage(ctx, d)
}

func (r *Runtime) warn(d Damage) {
	r.config.Log.Warn("an orchestration cannot be read: docs/recovery.md says what to do", "orchestrationId", d.ID, "partition", d.Partition, "error", d.Reason)
}

// reportDamage calls Config.Damaged, unless a call has succeeded before.
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
		return nil // the orchestration has been repaired
	}
	return err
}

// isDamaged reports whether the index lists the orchestration as damaged.
func (r *Runtime) isDamaged(ctx context.Context, id string) (bool, error) {
	_, err := r.config.Tables.Get(ctx, r.config.IndexTable, damageKey(tables.EscapeKey(id)))
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// clearDamage removes an orchestration from the index of damaged ones.
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
