package hmac

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// slotRow is a row of SlotsTable: the version of a slot, and its announcement.
type slotRow struct {
	instanceID, tenantID, slot, jobID string
	secretName, version               string
	created                           time.Time // of the version
	etag                              string    // of the row as read

	// From here on: zero until the version is announced.
	previous              string // the replaced version; "" for none
	activeAt, graceEndsAt time.Time
}

// announced reports whether the announcement is fixed.
func (r slotRow) announced() bool { return !r.activeAt.IsZero() }

// known returns the fields of the row for States.
func (r slotRow) known() Slot {
	return Slot{Name: r.slot, Version: r.version, ActiveAt: r.activeAt, GraceEndsAt: r.graceEndsAt}
}

func slotsOf(rows []slotRow) []Slot {
	slots := make([]Slot, len(rows))
	for i, r := range rows {
		slots[i] = r.known()
	}
	return slots
}

// Properties of the rows of SlotsTable.
const (
	propInstance   = "InstanceId"
	propTenant     = "TenantId"
	propSecretName = "SecretName"
	propVersion    = "Version"
	propSlot       = "Slot"
	propJob        = "JobId"
	propCreated    = "CreatedAtUtc"
	propPrevious   = "PreviousVersion"
	propActive     = "ActiveAtUtc"
	propGraceEnds  = "GraceEndsAtUtc"
)

// decide decides the slot for claim, unless it is decided already, and returns the decision.
func (s *Steps) decide(ctx context.Context, claim slotRow) (slotRow, error) {
	insert := s.tables.Apply(ctx, SlotsTable, tables.Insert(claim.entity()))
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
	return readSlot(claim.instanceID, row)
}

// replaceSlots replaces rows of an instance, all or none, if they are unchanged since their etags were read.
func (s *Steps) replaceSlots(ctx context.Context, rows ...slotRow) error {
	ops := make([]tables.Op, len(rows))
	for i, r := range rows {
		ops[i] = tables.Replace(r.entity())
	}
	if err := s.tables.Apply(ctx, SlotsTable, ops...); err != nil {
		return fmt.Errorf("replace slot: %w", err)
	}
	return nil
}

// slots reads the decided slots of an instance.
func (s *Steps) slots(ctx context.Context, instanceID string) ([]slotRow, error) {
	var rows []slotRow
	for e, err := range tables.All(ctx, s.tables, SlotsTable, tables.Query{Partition: tables.EscapeKey(instanceID)}) {
		if err != nil {
			return nil, fmt.Errorf("read slots: %w", err)
		}
		row, err := readSlot(instanceID, e)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Owner implements engine.Definition.Owner. Keys of an instance belong to the tenant that they were created for, even if another tenant
// registers the instance later. A secret with another name belongs to the platform.
func (s *Steps) Owner(ctx context.Context, m engine.Message, instanceTenant string) (string, error) {
	in, err := ParseInput(m.Operation, m.InstanceID, m.Input)
	if err != nil {
		return instanceTenant, nil // the run refuses it
	}
	if in.Operation == OperationNotify && in.SecretName != secrets.Name(Engine, m.InstanceID) {
		return "", nil
	}
	rows, err := s.slots(ctx, m.InstanceID)
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return "", err
	}
	for _, r := range rows {
		if !strings.EqualFold(r.tenantID, instanceTenant) {
			return r.tenantID, nil
		}
	}
	return instanceTenant, nil
}

// key returns the key of the row.
func (r slotRow) key() tables.Key {
	return tables.Key{Partition: tables.EscapeKey(r.instanceID), Row: tables.EscapeKey(r.slot)}
}

// entity returns the stored row.
func (r slotRow) entity() tables.Entity {
	e := tables.Entity{Key: r.key(), ETag: r.etag, Properties: map[string]any{
		propInstance:   r.instanceID,
		propTenant:     r.tenantID,
		propSlot:       r.slot,
		propJob:        r.jobID,
		propSecretName: r.secretName,
		propVersion:    r.version,
		propCreated:    r.created,
	}}
	if r.announced() {
		e.Properties[propPrevious], e.Properties[propActive], e.Properties[propGraceEnds] = r.previous, r.activeAt, r.graceEndsAt
	}
	return e
}

// readSlot reads a stored decision.
func readSlot(instanceID string, row tables.Entity) (slotRow, error) {
	r := slotRow{instanceID: instanceID, etag: row.ETag}
	for name, field := range map[string]*string{propSlot: &r.slot, propTenant: &r.tenantID, propJob: &r.jobID,
		propSecretName: &r.secretName, propVersion: &r.version, propPrevious: &r.previous} {
		*field, _ = row.Properties[name].(string)
	}
	for name, field := range map[string]*time.Time{propCreated: &r.created, propActive: &r.activeAt, propGraceEnds: &r.graceEndsAt} {
		at, _ := row.Properties[name].(time.Time)
		*field = at.UTC()
	}
	if r.slot == "" || r.secretName == "" || r.version == "" || r.created.IsZero() {
		return slotRow{}, fmt.Errorf("read slot %s: %s, %s, %s or %s is missing; delete the row to have it decided anew",
			row.Key, propSlot, propSecretName, propVersion, propCreated)
	}
	return r, nil
}

// output returns the output of Rotate for a decided slot; slot is its name as the caller wrote it.
func (r slotRow) output(slot string) RotateOutput {
	return RotateOutput{SecretName: r.secretName, Version: r.version, Slot: slot, CreatedAtUtc: r.created.UTC()}
}
