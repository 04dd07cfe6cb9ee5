package spn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/services/secrets"
)

// acceptances is the number of consecutive logins that have to accept a password: the login's replicas learn of it at
// different times.
const acceptances = 3

// ProbeInput names a secret that the login may not know yet.
type ProbeInput struct {
	ApplicationID string `json:"applicationId"`
	SecretName    string `json:"secretName"`
	Version       string `json:"version"`
}

// ProbeOutput describes a secret that works.
type ProbeOutput struct {
	// ValidAtUtc is when it was accepted, RetireAtUtc the end of the overlap that begins then; whole seconds.
	ValidAtUtc  time.Time `json:"validAtUtc"`
	RetireAtUtc time.Time `json:"retireAtUtc"`
}

// Probe asks the login whether it accepts the secret, without waiting: it is to be repeated until then. Errors are
// ErrInput, ErrKeyMissing, entra.ErrNotAccepted, and the others of entra and secrets.
func (s *Steps) Probe(ctx context.Context, in ProbeInput) (ProbeOutput, error) {
	if err := in.validate(); err != nil {
		return ProbeOutput{}, fmt.Errorf("probe: %w", err)
	}
	value, err := s.config.Values.Value(ctx, in.SecretName, in.Version)
	if errors.Is(err, secrets.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrKeyMissing, err)
	}
	if err != nil {
		return ProbeOutput{}, fmt.Errorf("probe: %w", err)
	}
	defer clear(value)
	for range acceptances {
		if err := s.config.Login.Try(ctx, in.ApplicationID, value); err != nil {
			return ProbeOutput{}, fmt.Errorf("probe secret %s version %s: %w", in.SecretName, in.Version, err)
		}
	}
	now := s.config.Now().UTC().Truncate(time.Second)
	return ProbeOutput{ValidAtUtc: now, RetireAtUtc: now.Add(s.config.Overlap)}, nil
}
