package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/tables"
)

// damageSlice is the number of damaged orchestrations that one sweep checks.
const damageSlice = 50

// reviewDamage checks a slice of the damaged orchestrations, the next slice each time. It wakes those that can be read
// again, removes those that are gone from the index, and reports those that were not reported.
func (r *Runtime) reviewDamage(ctx context.Context) error {
	r.mu.Lock()
	from := r.reviewFrom
	r.mu.Unlock()
	page, err := r.config.Tables.Query(ctx, r.config.IndexTable, tables.Query{Partition: damagePartition, From: from, Limit: damageSlice})
	if err != nil {
		return fmt.Errorf("sweep: damaged orchestrations: %w", err)
	}
	from = ""
	if n := len(page.Entities); page.Next != "" && n > 0 {
		from = page.Entities[n-1].Row + " " // sorts directly after this row, because row keys are hashes
	}
	r.mu.Lock()
	r.reviewFrom = from
	r.mu.Unlock()
	var errs []error
	for _, e := range page.Entities {
		if err := r.reviewOne(ctx, damageOf(e)); err != nil {
			errs = append(errs, fmt.Errorf("sweep: damaged orchestration %s: %w", e.String(columnID), err))
		}
	}
	return errors.Join(errs...)
}

// reviewOne checks one damaged orchestration.
func (r *Runtime) reviewOne(ctx context.Context, d Damage) error {
	if d.ID == "" {
		page, err := r.config.Tables.Query(ctx, r.config.Table, tables.Query{Partition: d.Partition, Limit: 1})
		if err != nil || len(page.Entities) > 0 || page.Next != "" {
			return errors.Join(err, r.reportDamage(ctx, d))
		}
		return r.clearDamage(ctx, d.Partition)
	}
	err := r.Readable(ctx, d.ID)
	switch {
	case errors.Is(err, ErrCorrupt):
		return r.reportDamage(ctx, d)
	case errors.Is(err, ErrNotFound):
		return r.clearDamage(ctx, d.Partition)
	case err != nil:
		return err
	}
	// Its messages may have become dead letters or may never have been sent, so the driver rechecks everything.
	wake := Signal{SignalID: uuid.NewString(), InstanceID: d.ID, Type: InternalContinue, Payload: Payload{Lost: true}}
	if err := r.send(ctx, wake, 0); err != nil {
		return err
	}
	r.config.Log.InfoContext(ctx, "an orchestration that was damaged can be read again: it is woken", "orchestrationId", d.ID)
	return r.clearDamage(ctx, d.Partition)
}

// FindDamage checks whether an orchestration without a status row is damaged, and records that (Damages). In most cases
// the orchestration was purged. The error is an error of storage.
func (r *Runtime) FindDamage(ctx context.Context, id string) error {
	err := r.Readable(ctx, id)
	r.noteDamage(ctx, err)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNewerSchema) {
		return nil
	}
	return err
}
