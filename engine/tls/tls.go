// Package tls holds the TLS certificate engine: Renew has the authority issue a certificate when its time has come,
// Distribute tells a target to serve it and looks, by a handshake, whether it does, Revoke makes one invalid.
//
// It promises that the private key is made in the certificate store and stays there: the engine handles signing requests
// and certificates, both of them public. A process that dies between an order and its certificate costs no other order:
// the signing request waits in the store, the order's address in a table, and whoever comes next goes on with both. A run
// renews a certificate once, however often its steps run. A certificate that was renewed before all targets took it is
// distributed by every later run until they do, and the versions before it are disabled only after that, and after an
// overlap; never, when no target is known. What is to be revoked is replaced everywhere first, unless the message says that it
// cannot wait.
//
// Storage keys: the certificates named tls-{first domain} (see secrets.Name) with the tags renewalJobId and renewedBecause; the table
// tlsOrders (partition: certificate name, rows: "order", "served", "window"); the table tlsChallenges (partition: "http-01", row: the token).
package tls

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/tables"
)

// Engine is the engine's name in queues, history and dead letters (standard, sections 2 and 4, "Engine Values").
const Engine = "tls"

// The engine's operations, as the history shows them (standard, section 4, "Engine Values").
const (
	OperationRenew      = "renew"
	OperationDistribute = "distribute"
	// OperationRevoke is beside those of the standard.
	OperationRevoke = "revoke"
)

// Tables of this engine. Whoever wires it creates them.
const (
	OrdersTable     = "tlsOrders"
	ChallengesTable = "tlsChallenges"
)

// What Config leaves open.
const (
	DefaultRenewAfter = 2.0 / 3
	DefaultOverlap    = 24 * time.Hour
	DefaultLookEvery  = 24 * time.Hour
)

// These errors are told apart with errors.Is.
var (
	// ErrInput: the message or the input of a step is malformed; repeating it cannot help.
	ErrInput = errors.New("invalid input")
	// ErrRefused: the authority will not issue the certificate, or its challenge cannot be answered; repeating it cannot help.
	ErrRefused = errors.New("refused by the certificate authority")
	// ErrOrderGone: the authority does not go on with an order: it is invalid, expired, unknown or another account's.
	ErrOrderGone = errors.New("the order is gone")
	// ErrNoCertificate: there is no certificate to distribute; renew it first.
	ErrNoCertificate = errors.New("no certificate")
	// ErrNotServed: a target does not serve the certificate, or not in a way that clients can verify.
	ErrNotServed = errors.New("not served")
	// ErrTarget: a target refuses what it is told, or cannot be told; repeating it cannot help.
	ErrTarget = errors.New("target refuses")
)

// RateLimitedError says that the authority wants to be left alone for a while.
type RateLimitedError struct {
	// Until is when it may be asked again (UTC).
	Until time.Time `json:"until"`
	// Detail is what the authority says.
	Detail string `json:"detail"`
}

// Error says until when, and why.
func (e *RateLimitedError) Error() string {
	return fmt.Sprintf("rate limit of the certificate authority, until %s: %s", e.Until.UTC().Format(time.RFC3339), e.Detail)
}

// ValidationError says that the authority did not find a domain under our control. Trying again soon does not help, and
// counts against a rate limit.
type ValidationError struct {
	Domain string `json:"domain"`
	// Detail is what the authority says.
	Detail string `json:"detail"`
}

// Error names the domain and what the authority says.
func (e *ValidationError) Error() string {
	return fmt.Sprintf("the certificate authority cannot validate %s: %s", e.Domain, e.Detail)
}

// Authority is the certificate authority. Certificates and signing requests are DER. Errors are ErrRefused, ErrOrderGone,
// *RateLimitedError, *ValidationError, and others, after which the call can be repeated.
type Authority interface {
	// Order asks for a certificate for the domains, which is to replace another one (a leaf; nil for none), and returns the
	// order's address.
	Order(ctx context.Context, domains []string, replaces []byte) (order string, err error)
	// Issue takes an order as far as there is to go: it shows control of the domains, hands the request in, and returns the
	// chain, leaf first. It goes on where the order stands, so it can be repeated.
	Issue(ctx context.Context, order string, request []byte) (chain [][]byte, err error)
	// Renewal is the window in which the authority wants a certificate renewed.
	Renewal(ctx context.Context, leaf []byte) (Window, error)
	// Revoke makes a certificate (a leaf) invalid for everybody; one that is revoked already stays so.
	Revoke(ctx context.Context, leaf []byte, reason Reason) error
	// Tidy takes away what processes that died have left of their answers to challenges. What it cannot take away it logs, for the
	// next time.
	Tidy(ctx context.Context)
}

// Config is what the steps need.
type Config struct {
	// Vault keeps the certificates and their keys. Required.
	Vault certificates.Store
	// Authority issues certificates. Required.
	Authority Authority
	// Targets says who serves a certificate. Required.
	Targets Targets
	// Distributor tells a target. Required.
	Distributor Distributor
	// Tables holds OrdersTable. Required.
	Tables tables.Store
	// RenewAfter is the share of a certificate's life after which it is renewed when the authority does not say when;
	// between 0 and 1, DefaultRenewAfter when 0.
	RenewAfter float64
	// Overlap is for how long all targets have to have served a version before those before it are disabled; DefaultOverlap when 0.
	Overlap time.Duration
	// LookEvery is how often each certificate is looked at: a moment of the authority's that comes before the next look is due at this
	// one (RFC 9773, section 4.2). DefaultLookEvery when 0.
	LookEvery time.Duration
	// Roots are what chains that targets serve have to lead to; the system's when nil.
	Roots *x509.CertPool
	// Now is the clock, time.Now when nil.
	Now func() time.Time
}

// Validate names everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	required := []struct {
		name    string
		missing bool
	}{{"Vault", c.Vault == nil}, {"Authority", c.Authority == nil}, {"Targets", c.Targets == nil}, {"Distributor", c.Distributor == nil}, {"Tables", c.Tables == nil}}
	for _, field := range required {
		if field.missing {
			errs = append(errs, fmt.Errorf("tls: Config.%s is missing", field.name))
		}
	}
	if c.RenewAfter < 0 || c.RenewAfter >= 1 {
		errs = append(errs, fmt.Errorf("tls: Config.RenewAfter is %v: set a share between 0 and 1", c.RenewAfter))
	}
	if c.Overlap < 0 || c.LookEvery < 0 {
		errs = append(errs, errors.New("tls: Config.Overlap or Config.LookEvery is negative"))
	}
	return errors.Join(errs...)
}

// Steps are the engine's steps, to be registered as activities. They are safe for concurrent use.
type Steps struct{ config Config }

// New validates config and returns the steps over it.
func New(config Config) (*Steps, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.RenewAfter == 0 {
		config.RenewAfter = DefaultRenewAfter
	}
	if config.Overlap == 0 {
		config.Overlap = DefaultOverlap
	}
	if config.LookEvery == 0 {
		config.LookEvery = DefaultLookEvery
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Steps{config: config}, nil
}
