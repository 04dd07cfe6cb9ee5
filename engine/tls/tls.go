// Package tls is the TLS certificate engine: Renew asks the authority for a certificate when it is due, Distribute
// notifies a target to serve it and checks that by a handshake, Revoke makes it invalid.
//
// The private key is made in the certificate store and stays there: the engine handles signing requests and
// certificates, both of them public. A process that dies between an order and its certificate costs no other order:
// the signing request is kept in the store, the order's address in a table, and the next process continues with both.
// A run renews a certificate once, however often its steps run. Every run distributes the current certificate until
// all targets serve it. The previous versions are disabled only after that, and after an overlap; without known
// targets, never. A certificate is replaced everywhere before its revocation, unless the message is urgent.
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
	// OperationRevoke is an addition to those of the standard.
	OperationRevoke = "revoke"
)

// Tables of this engine. The program that wires it creates them.
const (
	OrdersTable     = "tlsOrders"
	ChallengesTable = "tlsChallenges"
)

// Defaults of Config.
const (
	DefaultRenewAfter = 2.0 / 3
	DefaultOverlap    = 24 * time.Hour
	DefaultLookEvery  = 24 * time.Hour
)

// Distinguish these errors with errors.Is.
var (
	// ErrInput: the message or the input of a step is malformed; repeating it cannot help.
	ErrInput = errors.New("invalid input")
	// ErrRefused: the authority refuses to issue the certificate, or its challenge cannot be answered; repeating it
	// cannot help.
	ErrRefused = errors.New("refused by the certificate authority")
	// ErrOrderGone: the authority does not continue an order: it is invalid, expired, unknown or another account's.
	ErrOrderGone = errors.New("the order is gone")
	// ErrNoCertificate: no certificate exists to distribute; renew it first.
	ErrNoCertificate = errors.New("no certificate")
	// ErrNotServed: a target does not serve the certificate, or not in a way that clients can verify.
	ErrNotServed = errors.New("not served")
	// ErrTarget: a target refuses a notice, or cannot be notified; repeating it cannot help.
	ErrTarget = errors.New("target refuses")
)

// RateLimitedError means that the authority asks for a pause.
type RateLimitedError struct {
	// Until is the end of the pause (UTC).
	Until time.Time `json:"until"`
	// Detail is the authority's message.
	Detail string `json:"detail"`
}

// Error contains the end of the pause and the reason.
func (e *RateLimitedError) Error() string {
	return fmt.Sprintf("rate limit of the certificate authority, until %s: %s", e.Until.UTC().Format(time.RFC3339), e.Detail)
}

// ValidationError means that the authority could not verify control of a domain. A quick retry does not help, and
// counts against a rate limit.
type ValidationError struct {
	Domain string `json:"domain"`
	// Detail is the authority's message.
	Detail string `json:"detail"`
}

// Error names the domain and contains the authority's message.
func (e *ValidationError) Error() string {
	return fmt.Sprintf("the certificate authority cannot validate %s: %s", e.Domain, e.Detail)
}

// Authority is the certificate authority. Certificates and signing requests are DER. Errors are ErrRefused, ErrOrderGone,
// *RateLimitedError, *ValidationError, and others, after which the call can be repeated.
type Authority interface {
	// Order requests a certificate for the domains, which replaces another one (a leaf; nil for none), and returns
	// the order's address.
	Order(ctx context.Context, domains []string, replaces []byte) (order string, err error)
	// Issue completes an order: it proves control of the domains, submits the request, and returns the chain, leaf
	// first. It continues from the current state of the order, so it can be repeated.
	Issue(ctx context.Context, order string, request []byte) (chain [][]byte, err error)
	// Renewal returns the window in which the authority wants a certificate renewed.
	Renewal(ctx context.Context, leaf []byte) (Window, error)
	// Revoke makes a certificate (a leaf) invalid; a revoked one stays revoked.
	Revoke(ctx context.Context, leaf []byte, reason Reason) error
	// Tidy removes challenge answers that dead processes have left. Failures are logged, and retried the next time.
	Tidy(ctx context.Context)
}

// Config configures the steps.
type Config struct {
	// Vault keeps the certificates and their keys. Required.
	Vault certificates.Store
	// Authority issues certificates. Required.
	Authority Authority
	// Targets lists the targets of a certificate. Required.
	Targets Targets
	// Distributor notifies a target. Required.
	Distributor Distributor
	// Tables holds OrdersTable. Required.
	Tables tables.Store
	// RenewAfter is the share of a certificate's life after which it is renewed when the authority gives no window;
	// between 0 and 1, DefaultRenewAfter when 0.
	RenewAfter float64
	// Overlap is the time for which all targets must have served a version before its predecessors are disabled;
	// DefaultOverlap when 0.
	Overlap time.Duration
	// LookEvery is the interval of the checks of each certificate: a moment of the authority's before the next check
	// is due at this one (RFC 9773, section 4.2). DefaultLookEvery when 0.
	LookEvery time.Duration
	// Roots are the trusted roots of the targets' chains; the system's when nil.
	Roots *x509.CertPool
	// Now is the clock, time.Now when nil.
	Now func() time.Time
}

// Validate returns all errors.
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
