package tls

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Reason is the reason of a revocation (RFC 5280, section 5.3.1).
type Reason string

// The reasons that public authorities accept from the holders of a certificate.
const (
	Unspecified   Reason = "unspecified"
	KeyCompromise Reason = "keyCompromise"
	Superseded    Reason = "superseded"
	// CessationOfOperation is for a certificate that is no longer needed: it is not replaced.
	CessationOfOperation Reason = "cessationOfOperation"
)

// reasonCodes are the numbers of the reasons in a request.
var reasonCodes = map[Reason]int{Unspecified: 0, KeyCompromise: 1, Superseded: 4, CessationOfOperation: 5}

// Code returns the reason's number; false for an unknown reason.
func (r Reason) Code() (int, bool) {
	code, known := reasonCodes[r]
	return code, known
}

// Revocation is the request of a message of operation revoke, in addition to the domain that names the certificate.
type Revocation struct {
	// Version is the version to revoke; All means all that have not expired. One of the two is required.
	Version string `json:"version,omitempty"`
	All     bool   `json:"all,omitempty"`
	// Reason is required.
	Reason Reason `json:"reason,omitempty"`
	// Immediately revokes before another certificate exists. Only for KeyCompromise.
	Immediately bool `json:"immediately,omitempty"`
}

// validate checks the request of a message.
func (r Revocation) validate() error {
	_, known := r.Reason.Code()
	switch {
	case (r.Version == "") == !r.All:
		return errors.New("set version or all: revoke takes one of them")
	case !known:
		return fmt.Errorf("reason is %.40q: set one of %v", string(r.Reason), slices.Sorted(maps.Keys(reasonCodes)))
	case r.Immediately && r.Reason != KeyCompromise:
		return fmt.Errorf("immediately takes the reason %s: otherwise all targets get another certificate first", KeyCompromise)
	default:
		return nil
	}
}

// PlanInput selects the versions to revoke.
type PlanInput struct {
	// Domain names the certificate.
	Domain     string     `json:"domain"`
	Revocation Revocation `json:"revocation"`
	// JobID is the calling run: its own versions are kept. Required.
	JobID string `json:"jobId"`
}

// Plan lists the versions to revoke, and the replacement.
type Plan struct {
	// Name is the certificate's name in the store, Versions are those to revoke, oldest first.
	Name     string   `json:"name"`
	Versions []string `json:"versions"`
	// Domains are those of the replacement: the names of the current certificate. Empty without a current one.
	Domains []string `json:"domains,omitempty"`
}

// PlanRevocation finds the versions to revoke. ErrInput means that no version matches.
func (s *Steps) PlanRevocation(ctx context.Context, in PlanInput) (Plan, error) {
	plan := Plan{Name: CertificateName([]string{in.Domain})}
	versions, err := s.config.Vault.Versions(ctx, plan.Name)
	if err != nil {
		return Plan{}, fmt.Errorf("plan the revocation of certificate %s: %w", plan.Name, err)
	}
	for _, v := range versions {
		meant := v.Version == in.Revocation.Version || in.Revocation.All && v.Tags[TagJob] != in.JobID
		if meant && s.config.Now().Before(v.NotAfter) {
			plan.Versions = append(plan.Versions, v.Version)
		}
	}
	if len(plan.Versions) == 0 {
		return Plan{}, fmt.Errorf("plan the revocation of certificate %s: %w: it has no version %s that has not expired", plan.Name, ErrInput, in.Revocation.Version)
	}
	now, found, err := s.current(ctx, plan.Name)
	if err != nil {
		return Plan{}, fmt.Errorf("plan the revocation of certificate %s: %w", plan.Name, err)
	}
	if found {
		plan.Domains = append([]string{in.Domain}, slices.DeleteFunc(slices.Clone(now.leaf.DNSNames), func(d string) bool { return d == in.Domain })...)
	}
	return plan, nil
}

// RevokeInput names a version to revoke.
type RevokeInput struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Reason  Reason `json:"reason"`
}

// RevokeOutput describes the revoked version.
type RevokeOutput struct {
	Version string `json:"version"`
	// Serial and Fingerprint are those of the certificate, in lower-case hex.
	Serial       string    `json:"serial"`
	Fingerprint  string    `json:"fingerprint"`
	Reason       Reason    `json:"reason"`
	RevokedAtUtc time.Time `json:"revokedAtUtc"`
}

// Revoke asks the authority to revoke a version; a revoked one stays revoked. ErrRefused means that the authority
// refuses.
func (s *Steps) Revoke(ctx context.Context, in RevokeInput) (RevokeOutput, error) {
	der, err := s.config.Vault.Leaf(ctx, in.Name, in.Version)
	if err != nil {
		return RevokeOutput{}, fmt.Errorf("revoke certificate %s version %s: %w", in.Name, in.Version, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return RevokeOutput{}, fmt.Errorf("revoke certificate %s version %s: %w: %w", in.Name, in.Version, ErrInput, err)
	}
	if err := s.config.Authority.Revoke(ctx, der, in.Reason); err != nil {
		return RevokeOutput{}, fmt.Errorf("revoke certificate %s version %s, serial %s: %w", in.Name, in.Version, leaf.SerialNumber.Text(16), err)
	}
	return RevokeOutput{Version: in.Version, Serial: leaf.SerialNumber.Text(16), Fingerprint: fingerprint(leaf), Reason: in.Reason, RevokedAtUtc: s.config.Now().UTC()}, nil
}

// DisableInput names obsolete versions.
type DisableInput struct {
	Name     string   `json:"name"`
	Versions []string `json:"versions"`
}

// Disable disables versions in the store.
func (s *Steps) Disable(ctx context.Context, in DisableInput) (RetireOutput, error) {
	var out RetireOutput
	for _, version := range in.Versions {
		if err := s.config.Vault.Disable(ctx, in.Name, version); err != nil {
			return out, fmt.Errorf("disable what was revoked: %w", err)
		}
		out.Disabled = append(out.Disabled, version)
	}
	return out, nil
}
