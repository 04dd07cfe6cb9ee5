package tls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// maxTargets bounds the targets of a certificate.
const maxTargets = 1000

// Target is a server of a certificate.
type Target struct {
	// ID is its instance, or another unique name. Required.
	ID string `json:"id"`
	// NotifyURL is the address for notices about new versions. Required by HTTPDistributor. It is stored in rounds
	// and shown in the history, so it has neither a password nor a query, where keys would be: the distributor's
	// client authenticates.
	NotifyURL string `json:"notifyUrl"`
	// Address is its TLS address, as host:port. Required.
	Address string `json:"address"`
	// ServerName is the name to request in the handshake; the host of Address when the certificate covers it, else
	// the certificate's first domain.
	ServerName string `json:"serverName,omitempty"`
	// Certificates are the certificates that it serves, each by its first domain. StaticTargets reads it; a list of
	// one certificate's targets omits it.
	Certificates []string `json:"certificates,omitempty"`
}

// Targets lists the servers of certificates.
type Targets interface {
	// Targets lists the targets that serve the certificate for the domains; IDs are unique.
	Targets(ctx context.Context, domains []string) ([]Target, error)
}

// StaticTargets is a fixed list. A target serves the certificates in its Certificates, or any if the list is empty,
// which is for deployments with one certificate.
type StaticTargets []Target

// Targets implements the interface Targets.
func (t StaticTargets) Targets(_ context.Context, domains []string) ([]Target, error) {
	var serving []Target
	for _, target := range t {
		if len(target.Certificates) > 0 && !slices.Contains(target.Certificates, domains[0]) {
			continue
		}
		target.Certificates = nil
		serving = append(serving, target)
	}
	return serving, nil
}

// Validate returns all errors, by the index in the list, from [0]. certificates are the first domains of the
// scheduled certificates. A target without names serves the only one of them, and a name of a target is one of them,
// unless there are none at all.
func (t StaticTargets) Validate(certificates []string) error {
	var errs []error
	seen := map[string]bool{}
	for i, target := range t {
		for _, err := range []error{target.validate(), target.assigned(certificates)} {
			if err != nil {
				errs = append(errs, fmt.Errorf("[%d]: %w", i, err))
			}
		}
		if seen[target.ID] {
			errs = append(errs, fmt.Errorf("[%d]: the id %.80q is there twice", i, target.ID))
		}
		seen[target.ID] = true
	}
	return errors.Join(errs...)
}

// assigned checks the certificates of a target.
func (t Target) assigned(certificates []string) error {
	if len(t.Certificates) == 0 && len(certificates) != 1 {
		return fmt.Errorf("certificates is missing: name those that it serves, each by its first domain; only the certificate of a deployment that renews one on schedule goes without saying, and this one renews %d", len(certificates))
	}
	if len(t.Certificates) > 1 && t.ServerName != "" {
		return errors.New("serverName is for a target of one certificate: where there are several, each is asked for by its own name")
	}
	for _, name := range t.Certificates {
		if err := checkDomains([]string{name}); err != nil {
			return fmt.Errorf("certificates: %w", err)
		}
		if len(certificates) > 0 && !slices.Contains(certificates, name) {
			return fmt.Errorf("certificates: %q is not renewed on schedule, and would expire: there is %s", name, strings.Join(certificates, ", "))
		}
	}
	return nil
}

// TargetsInput names the certificate whose targets are listed.
type TargetsInput struct {
	Domains []string `json:"domains"`
	// Again counts the previous attempts: each has to read again, because an operator may have changed the targets to
	// fix the failure.
	Again int `json:"again,omitempty"`
}

// ListTargets lists the targets of a certificate.
func (s *Steps) ListTargets(ctx context.Context, in TargetsInput) ([]Target, error) {
	targets, err := s.config.Targets.Targets(ctx, in.Domains)
	if err != nil {
		return nil, fmt.Errorf("list targets: %w", err)
	}
	if len(targets) > maxTargets {
		return nil, fmt.Errorf("list targets: %w: %d targets, allowed are %d", ErrInput, len(targets), maxTargets)
	}
	seen := map[string]bool{}
	for i, target := range targets {
		if err := target.validate(); err != nil {
			return nil, fmt.Errorf("list targets: %w: target %d, %.80q: %w", ErrInput, i, target.ID, err)
		}
		if seen[target.ID] {
			return nil, fmt.Errorf("list targets: %w: %.80q is there twice", ErrInput, target.ID)
		}
		seen[target.ID] = true
	}
	return targets, nil
}

// validate checks a target before it is recorded. The error does not show possible secrets.
func (t Target) validate() error {
	if t.ID == "" {
		return errors.New("its id is missing")
	}
	if _, _, err := net.SplitHostPort(t.Address); err != nil {
		return errors.New("its address must be host:port")
	}
	if u, err := url.Parse(t.NotifyURL); err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("its notifyUrl must be a URL without a password and without a query")
	}
	return nil
}
