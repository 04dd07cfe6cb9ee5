package tls

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/services/certificates"
)

// Certificate names a certificate; it holds nothing secret.
type Certificate struct {
	// Name and Version are those in the certificate store.
	Name    string `json:"name"`
	Version string `json:"version"`
	// Fingerprint is the SHA-256 of the certificate, Serial its serial number; both in lower-case hex.
	Fingerprint string   `json:"fingerprint"`
	Serial      string   `json:"serial"`
	Domains     []string `json:"domains"`
	// NotBeforeUtc and NotAfterUtc bound its life.
	NotBeforeUtc time.Time `json:"notBeforeUtc"`
	NotAfterUtc  time.Time `json:"notAfterUtc"`
}

// held is a version with its certificate.
type held struct {
	version certificates.Version
	leaf    *x509.Certificate
	// jobs made the enabled versions up to this one.
	jobs []string
}

// Current returns the current certificate, or ErrNoCertificate.
func (s *Steps) Current(ctx context.Context, in RenewInput) (RenewOutput, error) {
	if err := in.validate(); err != nil {
		return RenewOutput{}, fmt.Errorf("look up certificate: %w", err)
	}
	name := CertificateName(in.Domains)
	now, found, err := s.current(ctx, name)
	if err != nil {
		return RenewOutput{}, fmt.Errorf("look up certificate %s: %w", name, err)
	}
	if !found {
		return RenewOutput{}, fmt.Errorf("look up certificate %s: %w: renew it first", name, ErrNoCertificate)
	}
	return RenewOutput{Certificate: describe(now)}, nil
}

// current returns the newest enabled version.
func (s *Steps) current(ctx context.Context, name string) (held, bool, error) {
	versions, err := s.config.Vault.Versions(ctx, name)
	if err != nil {
		return held{}, false, err
	}
	versions = slices.DeleteFunc(versions, func(v certificates.Version) bool { return !v.Enabled })
	if len(versions) == 0 {
		return held{}, false, nil
	}
	now := held{version: versions[len(versions)-1]}
	for _, v := range versions {
		now.jobs = append(now.jobs, v.Tags[TagJob])
	}
	der, err := s.config.Vault.Leaf(ctx, name, now.version.Version)
	if err != nil {
		return held{}, false, err
	}
	if now.leaf, err = x509.ParseCertificate(der); err != nil {
		return held{}, false, fmt.Errorf("version %s: %w", now.version.Version, err)
	}
	return now, true, nil
}

// describe returns the public data of a version.
func describe(h held) Certificate {
	return Certificate{Name: h.version.Name, Version: h.version.Version, Fingerprint: fingerprint(h.leaf), Serial: h.leaf.SerialNumber.Text(16),
		Domains: h.leaf.DNSNames, NotBeforeUtc: h.leaf.NotBefore.UTC(), NotAfterUtc: h.leaf.NotAfter.UTC()}
}

func fingerprint(leaf *x509.Certificate) string {
	sum := sha256.Sum256(leaf.Raw)
	return hex.EncodeToString(sum[:])
}

// covers reports whether a certificate has all the names.
func covers(leaf *x509.Certificate, domains []string) bool {
	return !slices.ContainsFunc(domains, func(d string) bool { return !slices.Contains(leaf.DNSNames, d) })
}

// sameNames compares names regardless of their order and number.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}
