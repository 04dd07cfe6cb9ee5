package tls

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Input is the engine-specific part of a message.
type Input struct {
	// Domain is the certificate's only name; Domains are its names, the first of which also names it in the store.
	// One of the two is required. International names are written in their ASCII form; a wildcard ("*.") needs a DNS
	// challenge.
	Domain  string   `json:"domain,omitempty"`
	Domains []string `json:"domains,omitempty"`
	// Force renews a certificate that is not due. Operation renew only.
	Force bool `json:"force,omitempty"`
	// KeyType is the required type of the certificate's key; a key of another type is replaced. "" keeps it, or is
	// certificates.DefaultKeyType for a new certificate. Operation renew only.
	KeyType certificates.KeyType `json:"keyType,omitempty"`
	// Revocation is for operation revoke only, which uses the first domain alone: it names the certificate.
	Revocation
}

// maxDomain is the length of a domain name (RFC 1034, section 3.1).
const maxDomain = 253

// domainSyntax matches two labels or more of letters, digits and dashes, the first of which may be a wildcard.
var domainSyntax = regexp.MustCompile(`^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Names checks the input and returns the certificate's domains, in lower case and each once.
func (in Input) Names() ([]string, error) {
	names, err := in.names()
	if err == nil && in.KeyType != "" {
		err = in.KeyType.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	return names, nil
}

func (in Input) names() ([]string, error) {
	domains := in.Domains
	switch {
	case in.Domain != "" && len(in.Domains) > 0:
		return nil, errors.New("set domain or domains, not both")
	case in.Domain != "":
		domains = []string{in.Domain}
	case len(in.Domains) == 0:
		return nil, errors.New("domain or domains is missing")
	}
	var names []string
	for _, domain := range domains {
		if name := strings.ToLower(domain); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, checkDomains(names)
}

// checkOperation refuses fields of another operation.
func (in Input) checkOperation(operation string) error {
	renewing := operation == "" || operation == OperationRenew
	var err error
	switch {
	case !renewing && (in.Force || in.KeyType != ""):
		err = fmt.Errorf("force and keyType belong to %s", OperationRenew)
	case operation == OperationRevoke:
		err = in.Revocation.validate()
	case in.Revocation != Revocation{}:
		err = fmt.Errorf("version, all, reason and immediately belong to %s", OperationRevoke)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}

// checkDomains checks names in lower case.
func checkDomains(domains []string) error {
	if len(domains) == 0 || len(domains) > certificates.MaxDomains {
		return fmt.Errorf("%d domains, allowed are 1 to %d", len(domains), certificates.MaxDomains)
	}
	for _, d := range domains {
		if len(d) > maxDomain || !domainSyntax.MatchString(d) {
			return fmt.Errorf("%.80q is no domain name: write letters, digits, dashes and dots, and international names in their ASCII form", d)
		}
	}
	return nil
}

// CertificateName returns the name in the store of the certificate for the domains.
func CertificateName(domains []string) string { return secrets.Name(Engine, domains[0]) }
