package hmac

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

// NotifyInput says which instance has to fetch which version.
type NotifyInput struct {
	// InstanceID is the instance. Required.
	InstanceID string `json:"instanceId"`
	// TenantID is the tenant of the instance; noted only.
	TenantID string `json:"tenantId,omitempty"`
	// SecretName and Version name the key, as RotateOutput does. Required.
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
}

// NotifyOutput is the notice on record.
type NotifyOutput struct {
	InstanceID string `json:"instanceId"`
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
	// RecordedAtUtc is when the notice was first recorded, in steps of 100 ns.
	RecordedAtUtc time.Time `json:"recordedAtUtc"`
}

// Notify records, once, that the instance has to fetch the version. Repeating it returns the notice that is there.
// Errors are ErrInput, and those of tables; after any other than ErrInput it can be repeated.
func (s *Steps) Notify(ctx context.Context, in NotifyInput) (NotifyOutput, error) {
	if err := in.validate(); err != nil {
		return NotifyOutput{}, fmt.Errorf("notify: %w", err)
	}
	out := NotifyOutput{
		InstanceID: in.InstanceID, SecretName: in.SecretName, Version: in.Version,
		// What is returned now has to be what the row returns later.
		RecordedAtUtc: s.now().UTC().Truncate(100 * time.Nanosecond),
	}
	key := tables.Key{Partition: tables.EscapeKey(in.InstanceID), Row: in.SecretName + "-" + in.Version}
	insert := s.tables.Apply(ctx, NoticesTable, tables.Op{Kind: tables.OpInsert, Entity: tables.Entity{
		Key: key,
		Properties: map[string]any{
			propInstance:   in.InstanceID,
			propTenant:     in.TenantID,
			propSecretName: in.SecretName,
			propVersion:    in.Version,
			propRecorded:   out.RecordedAtUtc,
		},
	}})
	if insert == nil {
		return out, nil
	}
	if !errors.Is(insert, tables.ErrExists) {
		return NotifyOutput{}, fmt.Errorf("notify %s of %s version %s: %w", in.InstanceID, in.SecretName, in.Version, insert)
	}
	row, err := s.tables.Get(ctx, NoticesTable, key)
	if err != nil {
		return NotifyOutput{}, fmt.Errorf("notify %s: read notice of %s version %s: %w", in.InstanceID, in.SecretName, in.Version, err)
	}
	recorded, ok := row.Properties[propRecorded].(time.Time)
	if !ok {
		return NotifyOutput{}, fmt.Errorf("notify %s: notice of %s version %s: %s is missing; delete the row to have it recorded anew",
			in.InstanceID, in.SecretName, in.Version, propRecorded)
	}
	out.RecordedAtUtc = recorded.UTC()
	return out, nil
}
