package tls

import (
	"context"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/services/certificates"
)

// RetireInput names the certificate whose earlier versions have served their time.
type RetireInput struct {
	// Name and Version are those of a version that all targets serve.
	Name    string `json:"name"`
	Version string `json:"version"`
}

// RetireOutput lists what was disabled.
type RetireOutput struct {
	Disabled []string `json:"disabled,omitempty"`
}

// Retire disables the versions before the given one, when that is older than the overlap. Later versions stay: they are
// another run's.
func (s *Steps) Retire(ctx context.Context, in RetireInput) (RetireOutput, error) {
	versions, err := s.config.Vault.Versions(ctx, in.Name)
	if err != nil {
		return RetireOutput{}, fmt.Errorf("retire versions of certificate %s: %w", in.Name, err)
	}
	at := slices.IndexFunc(versions, func(v certificates.Version) bool { return v.Version == in.Version })
	var out RetireOutput
	if at < 0 || s.config.Now().Before(versions[at].Created.Add(s.config.Overlap)) {
		return out, nil
	}
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
