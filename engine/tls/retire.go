package tls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/tables"
)

// servedRow is the row of OrdersTable with the version that all targets of a certificate serve.
const servedRow = "served"

// Properties of that row.
const (
	propVersion = "Version"
	propSince   = "SinceUtc"
)

// RetireInput names a certificate with earlier versions to retire.
type RetireInput struct {
	// Name and Version are those of a version that all targets serve.
	Name    string `json:"name"`
	Version string `json:"version"`
}

// RetireOutput lists the disabled versions.
type RetireOutput struct {
	Disabled []string `json:"disabled,omitempty"`
}

// Retire disables the versions before the given one, when all targets have served it for an overlap: from its first
// Retire, since each follows a distribution to all of them. Later versions stay: they belong to another run.
func (s *Steps) Retire(ctx context.Context, in RetireInput) (RetireOutput, error) {
	versions, err := s.config.Vault.Versions(ctx, in.Name)
	if err != nil {
		return RetireOutput{}, fmt.Errorf("retire versions of certificate %s: %w", in.Name, err)
	}
	at := slices.IndexFunc(versions, func(v certificates.Version) bool { return v.Version == in.Version })
	if at < 0 {
		return RetireOutput{}, nil
	}
	since, err := s.servedSince(ctx, in)
	if err != nil || s.config.Now().Before(since.Add(s.config.Overlap)) {
		return RetireOutput{}, err
	}
	var out RetireOutput
	for _, v := range versions[:at] {
		if !v.Enabled {
			continue
		}
		if err := s.config.Vault.Disable(ctx, in.Name, v.Version); err != nil {
			return out, fmt.Errorf("retire: %w", err)
		}
		out.Disabled = append(out.Disabled, v.Version)
	}
	return out, nil
}

// servedSince returns when all targets were first seen to serve a version. For an unknown version it is now: of
// several concurrent callers, the last one's time counts, which is the latest.
func (s *Steps) servedSince(ctx context.Context, in RetireInput) (time.Time, error) {
	key := tables.Key{Partition: in.Name, Row: servedRow}
	row, err := s.config.Tables.Get(ctx, OrdersTable, key)
	if err == nil && row.Properties[propVersion] == in.Version {
		return row.Time(propSince), nil
	}
	now := s.config.Now().UTC()
	if err == nil || errors.Is(err, tables.ErrNotFound) {
		err = s.config.Tables.Apply(ctx, OrdersTable, tables.Upsert(tables.Entity{Key: key, Properties: map[string]any{propVersion: in.Version, propSince: now}}))
	}
	if err != nil {
		return now, fmt.Errorf("note that version %s of certificate %s is served: %w", in.Version, in.Name, err)
	}
	return now, nil
}
