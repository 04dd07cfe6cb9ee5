package hmac

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// slotRow is a row of SlotsTable: which version a slot was rotated to.
type slotRow struct {
	instanceID, tenantID, slot, jobID string
	secretName, version, previous     string
	created                           time.Time // of the version
	etag                              string    // of the row that was read
}

// Properties of the rows of SlotsTable.
const (
	propInstance   = "InstanceId"
	propTenant     = "TenantId"
	propSecretName = "SecretName"
	propVersion    = "Version"
	propSlot       = "Slot"
	propJob        = "JobId"
	propPrevious   = "PreviousVersion"
	propCreated    = "CreatedAtUtc"
)

// decide has the slot decided for claim, unless it has been decided before, and returns the decision.
func (s *Steps) decide(ctx context.Context, claim slotRow) (slotRow, error) {
	insert := s.tables.Apply(ctx, SlotsTable, tables.Op{Kind: tables.OpInsert, Entity: claim.entity()})
	if insert == nil {
		return claim, nil
	}
	if !errors.Is(insert, tables.ErrExists) && !errors.Is(insert, tables.ErrOutcomeUnknown) {
		return slotRow{}, fmt.Errorf("decide slot: %w", insert)
	}
	row, err := s.tables.Get(ctx, SlotsTable, claim.key())
	if errors.Is(err, tables.ErrNotFound) && errors.Is(insert, tables.ErrOutcomeUnknown) {
		return slotRow{}, fmt.Errorf("decide slot: %w", insert)
	}
	if err != nil {
		return slotRow{}, fmt.Errorf("read slot: %w", err)
	}
	return readSlot(claim, row)
}

// replaceSlot decides the slot anew, for claim, if nobody else did since claim.etag was read.
func (s *Steps) replaceSlot(ctx context.Context, claim slotRow) error {
	if err := s.tables.Apply(ctx, SlotsTable, tables.Op{Kind: tables.OpReplace, Entity: claim.entity()}); err != nil {
		return fmt.Errorf("decide slot anew: %w", err)
	}
	return nil
}

// key addresses the row.
func (r slotRow) key() tables.Key {
	return tables.Key{Partition: tables.EscapeKey(r.instanceID), Row: tables.EscapeKey(r.slot)}
}

// entity is the row as it is stored.
func (r slotRow) entity() tables.Entity {
	return tables.Entity{Key: r.key(), ETag: r.etag, Properties: map[string]any{
		propInstance:   r.instanceID,
		propTenant:     r.tenantID,
		propSlot:       r.slot,
		propJob:        r.jobID,
		propSecretName: r.secretName,
		propVersion:    r.version,
		propPrevious:   r.previous,
		propCreated:    r.created,
	}}
}

// readSlot reads a stored decision about the slot of asked.
func readSlot(asked slotRow, row tables.Entity) (slotRow, error) {
	r := slotRow{instanceID: asked.instanceID, slot: asked.slot, secretName: asked.secretName, etag: row.ETag}
	r.tenantID, _ = row.Properties[propTenant].(string)
	r.jobID, _ = row.Properties[propJob].(string)
	r.previous, _ = row.Properties[propPrevious].(string)
	var okVersion, okCreated bool
	r.version, okVersion = row.Properties[propVersion].(string)
	r.created, okCreated = row.Properties[propCreated].(time.Time)
	if !okVersion || !okCreated {
		return slotRow{}, fmt.Errorf("read slot %s/%s: %s or %s is missing; delete the row to have it decided anew", row.Partition, row.Row, propVersion, propCreated)
	}
	return r, nil
}

// output is what Rotate returns for a decided slot; slot is its name as the caller wrote it.
func (r slotRow) output(slot string) RotateOutput {
	return RotateOutput{SecretName: r.secretName, Version: r.version, Slot: slot, PreviousVersion: r.previous, CreatedAtUtc: r.created.UTC()}
}
