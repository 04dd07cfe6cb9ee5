// Package acme is the certificate authority of the TLS engine over the ACME protocol (RFC 8555) with renewal information
// (RFC 9773).
//
// One account is used for all orders: its key is made once and kept in the secret store, and every process uses it.
// The package stores nothing else: orders are stored at the authority, and the caller keeps their addresses.
//
// Storage keys: the secret named acme-{hash of the directory's address} (see secrets.Name), the account's key in PKCS #8;
// through [HTTP01], the partition "http-01" of the table tlsChallenges.
package acme

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/mail"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mholt/acmez/v3/acme"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Bounds of the requests to the authority.
const (
	requestTimeout = 30 * time.Second
	pollTimeout    = 2 * time.Minute
	cleanUpTimeout = 10 * time.Second
)

// maxLooks bounds the order reads of one Issue: to authorize, to finalize, to fetch, and as many again for concurrent
// calls.
const maxLooks = 6

// Vault keeps the account's key.
type Vault interface {
	secrets.Store
	secrets.Reader
}

// Config configures an Authority.
type Config struct {
	// Directory is the address of the authority's directory, with https. Using it means agreeing to the authority's terms of
	// service. Required.
	Directory string
	// Contact is the e-mail address that the authority may write to; none when empty.
	Contact string
	// Vault keeps the account's key. Required.
	Vault Vault
	// Solvers answer challenges; each domain uses the first whose type the authority offers. One or more.
	Solvers []Solver
	// Client talks to the authority; nil makes one.
	Client *http.Client
	// PollInterval is the polling interval when the authority gives none; default 1 s.
	PollInterval time.Duration
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Log logs minor failures; default slog.Default().
	Log *slog.Logger
}

// Validate returns all errors.
func (c Config) Validate() error {
	var errs []error
	if u, err := url.Parse(c.Directory); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		errs = append(errs, errors.New("acme: Config.Directory must be an https URL, such as https://acme-v02.api.letsencrypt.org/directory"))
	}
	if c.Contact != "" {
		if a, err := mail.ParseAddress(c.Contact); err != nil || a.Address != c.Contact {
			errs = append(errs, errors.New("acme: Config.Contact is no e-mail address"))
		}
	}
	if c.Vault == nil {
		errs = append(errs, errors.New("acme: Config.Vault is missing"))
	}
	if len(c.Solvers) == 0 {
		errs = append(errs, errors.New("acme: Config.Solvers is empty"))
	}
	return errors.Join(errs...)
}

// Authority implements tls.Authority. It is safe for concurrent use.
type Authority struct {
	config Config
	client *acme.Client

	mu      sync.Mutex
	account *acme.Account // once it is known
}

var _ tls.Authority = (*Authority)(nil)

// New validates config. It sends no request.
func New(config Config) (*Authority, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.PollInterval == 0 {
		config.PollInterval = time.Second
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	client := http.Client{Timeout: requestTimeout}
	if config.Client != nil {
		client = *config.Client
	}
	client.Transport = limitWatch{next: client.Transport}
	return &Authority{config: config, client: &acme.Client{Directory: config.Directory, HTTPClient: &client,
		UserAgent: "roundhouse", PollInterval: config.PollInterval, PollTimeout: pollTimeout}}, nil
}

// Order implements tls.Authority.
func (a *Authority) Order(ctx context.Context, domains []string, replaces []byte) (string, error) {
	ctx, limit := watchLimit(ctx, a.config.Now)
	account, err := a.ensureAccount(ctx)
	if err != nil {
		return "", a.explain(limit, "open the account", err)
	}
	order := acme.Order{Replaces: a.replaced(ctx, replaces)}
	for _, d := range domains {
		order.Identifiers = append(order.Identifiers, acme.Identifier{Type: "dns", Value: d})
	}
	made, err := a.client.NewOrder(ctx, account, order)
	if order.Replaces != "" && (isRefusal(err) || isProblem(err, acme.ProblemTypeServerInternal)) && !isProblem(err, acme.ProblemTypeRateLimited) {
		// The replaced certificate is optional. If the authority does not know it, has replaced it, or fails to look
		// it up, the order is sent without it.
		order.Replaces = ""
		made, err = a.client.NewOrder(ctx, account, order)
	}
	if err != nil {
		return "", a.explain(limit, "order", err)
	}
	return made.Location, nil
}

// replaced returns the authority's id of a certificate, "" for an unknown one.
func (a *Authority) replaced(ctx context.Context, leaf []byte) string {
	if leaf == nil {
		return ""
	}
	directory, err := a.client.GetDirectory(ctx)
	if err != nil || directory.RenewalInfo == "" {
		return ""
	}
	certificate, err := x509.ParseCertificate(leaf)
	if err != nil {
		return ""
	}
	id, err := acme.ARIUniqueIdentifier(certificate)
	if err != nil {
		return ""
	}
	return id
}

// Issue implements tls.Authority.
func (a *Authority) Issue(ctx context.Context, address string, request []byte) ([][]byte, error) {
	ctx, limit := watchLimit(ctx, a.config.Now)
	account, err := a.ensureAccount(ctx)
	if err != nil {
		return nil, a.explain(limit, "open the account", err)
	}
	for range maxLooks {
		var order acme.Order
		order, err = a.client.GetOrder(ctx, account, acme.Order{Location: address})
		if isRefusal(err) && !isProblem(err, acme.ProblemTypeRateLimited) {
			return nil, fmt.Errorf("%w: %w", tls.ErrOrderGone, err)
		}
		if err != nil {
			return nil, a.explain(limit, "look at the order", err)
		}
		switch order.Status {
		case acme.StatusPending:
			if err := a.authorize(ctx, account, order); err != nil {
				return nil, a.explain(limit, "authorize", err)
			}
		case acme.StatusReady, acme.StatusProcessing:
			// Finalizing an order that is being processed only waits for it.
			_, err = a.client.FinalizeOrder(ctx, account, order, request)
			if err = a.explain(limit, "finalize the order", err); isFinal(err) {
				return nil, err
			}
		case acme.StatusValid:
			return a.fetch(ctx, account, order, limit)
		default:
			return nil, fmt.Errorf("%w: it is %s", tls.ErrOrderGone, order.Status)
		}
	}
	if err == nil {
		err = errors.New("the order does not come to an end")
	}
	return nil, err
}

// fetch downloads the chain of an order, the first of several.
func (a *Authority) fetch(ctx context.Context, account acme.Account, order acme.Order, limit *limit) ([][]byte, error) {
	chains, err := a.client.GetCertificateChain(ctx, account, order.Certificate)
	if err != nil {
		return nil, a.explain(limit, "fetch the certificate", err)
	}
	return decodeChain(chains[0].ChainPEM), nil
}

// Renewal implements tls.Authority.
func (a *Authority) Renewal(ctx context.Context, leaf []byte) (tls.Window, error) {
	certificate, err := x509.ParseCertificate(leaf)
	if err != nil {
		return tls.Window{}, fmt.Errorf("renewal information: %w", err)
	}
	info, err := a.client.GetRenewalInfo(ctx, certificate)
	if errors.Is(err, acme.ErrUnsupported) {
		return tls.Window{}, nil
	}
	if err != nil {
		return tls.Window{}, fmt.Errorf("renewal information: %w", err)
	}
	window := tls.Window{From: info.SuggestedWindow.Start.UTC(), To: info.SuggestedWindow.End.UTC(), Explanation: info.ExplanationURL}
	if info.RetryAfter != nil {
		window.Again = a.config.Now().Add(time.Until(*info.RetryAfter)) // the client uses the system's clock
	}
	return window, nil
}

// Revoke implements tls.Authority. It signs with the account's key, so only certificates of this account are revoked.
func (a *Authority) Revoke(ctx context.Context, leaf []byte, reason tls.Reason) error {
	certificate, err := x509.ParseCertificate(leaf)
	code, known := reason.Code()
	if err != nil || !known {
		return fmt.Errorf("%w: revoke for the reason %q: %w", tls.ErrInput, reason, err)
	}
	ctx, limit := watchLimit(ctx, a.config.Now)
	account, err := a.ensureAccount(ctx)
	if err != nil {
		return a.explain(limit, "open the account", err)
	}
	err = a.client.RevokeCertificate(ctx, account, certificate, nil, code)
	if isProblem(err, acme.ProblemTypeAlreadyRevoked) {
		return nil
	}
	if isProblem(err, acme.ProblemTypeUnauthorized) {
		err = fmt.Errorf("%w: %w", tls.ErrRefused, err)
	}
	return a.explain(limit, "revoke", err)
}

// decodeChain decodes the certificates of a PEM document.
func decodeChain(document []byte) [][]byte {
	var chain [][]byte
	for block, rest := pem.Decode(document); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			chain = append(chain, block.Bytes)
		}
	}
	return chain
}

// contacts returns the contact in the form of the account.
func (c Config) contacts() []string {
	if c.Contact == "" {
		return nil
	}
	return []string{"mailto:" + strings.TrimSpace(c.Contact)}
}
