package tls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
)

// maxTargets bounds the targets of a certificate.
const maxTargets = 1000

// Target is somebody who serves a certificate.
type Target struct {
	// ID is the instance that it belongs to, or another name that tells targets apart. Required.
	ID string `json:"id"`
	// NotifyURL is where it is told about a new version. Required by HTTPDistributor. It is kept in rounds and shown in the
	// history, so it has neither a password nor a query, where keys would be: the distributor's client says who it is.
	NotifyURL string `json:"notifyUrl"`
	// Address is where it serves, as host:port. Required.
	Address string `json:"address"`
	// ServerName is the name to ask for in the handshake; the host of Address when that is a name, else the certificate's
	// first one.
	ServerName string `json:"serverName,omitempty"`
}

// Targets says who serves a certificate.
type Targets interface {
	// Targets lists those who serve the certificate for the domains; IDs are unique.
	Targets(ctx context.Context, domains []string) ([]Target, error)
}

// StaticTargets are the same for every certificate.
type StaticTargets []Target

// Targets implements the interface of its name.
func (t StaticTargets) Targets(context.Context, []string) ([]Target, error) { return t, nil }

// TargetsInput says whose targets are wanted.
type TargetsInput struct {
	Domains []string `json:"domains"`
	// Again counts the attempts before: each has to ask anew, because somebody may have changed the targets to mend what went
	// wrong.
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

// validate checks a target before it is recorded. The error does not show what may be secret.
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
