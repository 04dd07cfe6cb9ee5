package tls

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// Tags of a version: TagJob names the run that made it, TagBecause the reason.
const (
	TagJob     = "renewalJobId"
	TagBecause = "renewedBecause"
)

// maxTries bounds the rounds of one Renew: each follows a sign of concurrent work.
const maxTries = 4

// RenewInput names the certificate to renew.
type RenewInput struct {
	// Domains are the certificate's names, as Input.Names returns them. Required.
	Domains []string `json:"domains"`
	// Force renews it whether it is due or not.
	Force bool `json:"force,omitempty"`
	// KeyType is the required type of its key; "" keeps the current one.
	KeyType certificates.KeyType `json:"keyType,omitempty"`
	// JobID is the calling run; one run renews once. Required.
	JobID string `json:"jobId"`
	// Avoid are versions that may not stay the current one.
	Avoid []string `json:"avoid,omitempty"`
	// Again counts the previous attempts: each has to check again, because another run may have renewed it since.
	Again int `json:"again,omitempty"`
}

// RenewOutput is the current certificate after Renew.
type RenewOutput struct {
	Certificate Certificate `json:"certificate"`
	// Renewed means that this run made it.
	Renewed bool `json:"renewed"`
	// RenewAtUtc is when it is due, if that was checked.
	RenewAtUtc time.Time `json:"renewAtUtc,omitzero"`
	// Note is the reason why it was not renewed.
	Note string `json:"note,omitempty"`
	// Because is the reason of the renewal.
	Because string `json:"because,omitempty"`
	// ExplanationURL is the authority's page with the reason for an early renewal.
	ExplanationURL string `json:"explanationUrl,omitempty"`
}

// Renew makes sure that a certificate for the domains exists that is not due for renewal. Repeating it for the same
// job makes no other, forced or not. Errors are ErrInput and those of Authority, package certificates and tables; it
// is safe to repeat after all.
func (s *Steps) Renew(ctx context.Context, in RenewInput) (RenewOutput, error) {
	if err := in.validate(); err != nil {
		return RenewOutput{}, fmt.Errorf("renew: %w", err)
	}
	name := CertificateName(in.Domains)
	var err error
	for range maxTries {
		var out RenewOutput
		if out, err = s.tryRenew(ctx, name, in); err == nil {
			s.config.Authority.Tidy(ctx)
			return out, nil
		}
		if !overtaken(err) {
			break
		}
	}
	return RenewOutput{}, fmt.Errorf("renew certificate %s: %w", name, err)
}

// overtaken reports whether another round can settle the error.
func overtaken(err error) bool {
	for _, by := range []error{ErrOrderGone, certificates.ErrNoRequest, tables.ErrExists, tables.ErrPrecondition} {
		if errors.Is(err, by) {
			return true
		}
	}
	return false
}

func (s *Steps) tryRenew(ctx context.Context, name string, in RenewInput) (RenewOutput, error) {
	now, found, err := s.current(ctx, name)
	if err != nil {
		return RenewOutput{}, err
	}
	var replaces []byte
	why := due{because: "there was none"}
	key := cmp.Or(in.KeyType, certificates.DefaultKeyType)
	if found {
		if why, err = s.due(ctx, now, in); err != nil {
			return RenewOutput{}, err
		}
		if out, keep := keep(now, in, why); keep {
			return out, nil
		}
		replaces = now.leaf.Raw
		key = cmp.Or(in.KeyType, certificates.KeyTypeOf(now.leaf.PublicKey), certificates.DefaultKeyType)
	}
	request, err := s.request(ctx, name, in.Domains, key)
	if err != nil {
		return RenewOutput{}, err
	}
	if out, done, err := s.overtook(ctx, name, now, in); done || err != nil {
		return out, err
	}
	order, err := s.order(ctx, in, request.Raw, replaces)
	if err != nil {
		return RenewOutput{}, err
	}
	chain, err := s.issue(ctx, order, request, in.Domains)
	if err != nil {
		if errors.Is(err, ErrOrderGone) {
			err = errors.Join(err, s.forgetOrder(ctx, name, order))
		}
		return RenewOutput{}, err
	}
	version, err := s.config.Vault.Merge(ctx, name, chain, map[string]string{TagJob: in.JobID, TagBecause: why.because})
	if err != nil {
		return RenewOutput{}, err
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return RenewOutput{}, err
	}
	return RenewOutput{Certificate: describe(held{version: version, leaf: leaf}), Renewed: true, Because: why.because, ExplanationURL: why.explanation}, nil
}

// overtook reports whether another process has renewed since before; then the request is unnecessary, and overtook
// drops it.
func (s *Steps) overtook(ctx context.Context, name string, before held, in RenewInput) (RenewOutput, bool, error) {
	now, found, err := s.current(ctx, name)
	if err != nil || !found || now.version.Version == before.version.Version {
		return RenewOutput{}, false, err
	}
	why, err := s.due(ctx, now, in)
	if err != nil {
		return RenewOutput{}, false, err
	}
	out, stays := keep(now, in, why)
	if !stays {
		return RenewOutput{}, false, nil
	}
	return out, true, s.config.Vault.Cancel(ctx, name)
}

// keep reports whether the current certificate is kept, and returns the output of Renew then.
func keep(now held, in RenewInput, why due) (RenewOutput, bool) {
	out := RenewOutput{Certificate: describe(now)}
	if slices.Contains(now.jobs, in.JobID) {
		out.Renewed = true
		if now.version.Tags[TagJob] == in.JobID {
			out.Because = now.version.Tags[TagBecause]
		}
		return out, true
	}
	if why.because != "" {
		return out, false
	}
	out.RenewAtUtc, out.ExplanationURL = why.at, why.explanation
	out.Note = "not due before " + why.at.Format(time.RFC3339)
	return out, true
}

// request returns the signing request for the domains. A pending one for other domains, or of another key type, is
// dropped: the current message is newer.
func (s *Steps) request(ctx context.Context, name string, domains []string, key certificates.KeyType) (*x509.CertificateRequest, error) {
	for canceled := false; ; canceled = true {
		der, err := s.config.Vault.Request(ctx, name, domains, key)
		if err != nil {
			return nil, err
		}
		request, err := x509.ParseCertificateRequest(der)
		if err == nil {
			err = request.CheckSignature()
		}
		if err == nil && !sameNames(request.DNSNames, domains) {
			err = fmt.Errorf("%w for these domains, but one for %q", certificates.ErrNoRequest, request.DNSNames)
		}
		if err == nil && certificates.KeyTypeOf(request.PublicKey) != key {
			err = fmt.Errorf("%w for a key of type %s", certificates.ErrNoRequest, key)
		}
		if err == nil {
			return request, nil
		}
		if canceled {
			return nil, fmt.Errorf("the store's signing request: %w", err)
		}
		if err := s.config.Vault.Cancel(ctx, name); err != nil {
			return nil, err
		}
	}
}

// issue gets the chain and checks that it matches the request.
func (s *Steps) issue(ctx context.Context, order string, request *x509.CertificateRequest, domains []string) ([][]byte, error) {
	chain, err := s.config.Authority.Issue(ctx, order, request.Raw)
	if err != nil {
		return nil, err
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("%w: it led to no certificate", ErrOrderGone)
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, fmt.Errorf("%w: its certificate: %w", ErrOrderGone, err)
	}
	if !certificates.Belongs(request, leaf) || !covers(leaf, domains) {
		return nil, fmt.Errorf("%w: its certificate is for another key or for other names", ErrOrderGone)
	}
	return chain, nil
}

// validate checks input from a message or another step.
func (in RenewInput) validate() error {
	err := checkDomains(in.Domains)
	if in.KeyType != "" {
		err = errors.Join(err, in.KeyType.Validate())
	}
	if in.JobID == "" || len(in.JobID) > secrets.MaxTag {
		err = errors.Join(err, fmt.Errorf("jobId must have 1 to %d bytes", secrets.MaxTag))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}
