// Package outbound makes the HTTP clients of outgoing calls, which identify the caller to the receiver: by a token of
// the app's own identity in Microsoft Entra, by signatures of Standard Webhooks, by a client certificate, or by several
// of them.
//
// A client's token, signature or certificate is sent only to its target. A request to another host is refused before it
// is sent, and no redirect is followed, not even to the target itself. A client certificate that the target does not
// request is an error, not a call without one. Keys and certificates are looked up in the vault again every few
// minutes, so a rotation needs no restart. No error and no log line contains a token, a key or the query of a URL. The
// identification that was sent can be recorded (see Record): its kind, the ids and the fingerprint, never the secrets.
//
// It owns no storage keys.
package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
)

// Test for these errors with errors.Is.
var (
	// ErrRedirect means that the target answers with a redirect. Do not retry: correct the address.
	ErrRedirect = errors.New("redirects are not followed: correct the address")
	// ErrElsewhere means that a request is for another host than the client's target.
	ErrElsewhere = errors.New("the request is for another host than the target's")
	// ErrNotAsked means that a target does not request the configured client certificate.
	ErrNotAsked = errors.New("the target does not ask for a client certificate: have it require one, or configure none")
	// ErrCertificate means that a secret holds no certificate with its key.
	ErrCertificate = errors.New("it is no certificate with a private key, in PEM or PKCS #12 without a password")
)

// DefaultTimeout bounds a request of a client, from looking up keys to the end of the answer.
const DefaultTimeout = 30 * time.Second

const (
	handshakeTimeout = 10 * time.Second
	// idleConn is below the four minutes after which Azure's load balancer drops a connection.
	idleConn = 90 * time.Second
	// maxAnswerHeader bounds the headers of an answer in memory.
	maxAnswerHeader = 64 << 10
)

// Vault holds keys and certificates. In Key Vault, a certificate is also a secret of the same name.
type Vault interface {
	secrets.Store
	secrets.Reader
}

// Config configures Clients. Identity and Vault are required.
type Config struct {
	// Identity returns the app's own credential; it is called when a target needs a token.
	Identity func() (azcore.TokenCredential, error)
	Vault    Vault
	// Development accepts http addresses of other machines, for calls without a token and without a certificate.
	Development bool
	// Roots are the trusted certificate authorities; nil means the system's.
	Roots *x509.CertPool
	// Log logs the targets that are called without identification; nil logs nothing.
	Log *slog.Logger
	// Dial replaces the network, for tests; nil means the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Clients makes clients. It is safe for concurrent use.
type Clients struct {
	config Config

	mu         sync.Mutex
	credential azcore.TokenCredential
}

// New validates the configuration. It sends no request.
func New(c Config) (*Clients, error) {
	if c.Identity == nil || c.Vault == nil {
		return nil, errors.New("outbound: Config.Identity and Config.Vault are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: handshakeTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	return &Clients{config: c}, nil
}

// Client returns the client of a target, an https address of which only the host matters; http is for this machine.
// name is the target's name in log lines: its setting. No request is sent. The errors describe the problems of target
// and auth, one per line.
//
// Every answer of 3xx is an ErrRedirect. A signed request is read into memory as a whole. Its webhook-id is its
// Idempotency-Key, if set (see WebhookID), so that all attempts have the same, and otherwise random.
func (c *Clients) Client(name, target string, a Auth) (*http.Client, error) {
	u, err := c.parse(target, a)
	if err != nil {
		return nil, err
	}
	base := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            c.config.Dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.config.Roots},
		TLSHandshakeTimeout:    handshakeTimeout,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        idleConn,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
	c.tell(name, u, a)
	return &http.Client{Timeout: DefaultTimeout, Transport: &caller{
		next: c.identified(name, u, a, base), keys: c.Keys(a), host: u.Host, now: c.config.Now,
	}}, nil
}

// Identified adds a token and a client certificate to requests over base, which decides how to connect. It leaves
// signatures and redirects to the caller. The errors are those of Client.
func (c *Clients) Identified(name, target string, a Auth, base *http.Transport) (http.RoundTripper, error) {
	u, err := c.parse(target, a)
	if err != nil {
		return nil, err
	}
	c.tell(name, u, a)
	return c.identified(name, u, a, base), nil
}

func (c *Clients) identified(name string, target *url.URL, a Auth, base *http.Transport) *identified {
	i := &identified{target: target, audience: a.Audience, token: c.token, pools: &pools{base: base}}
	if a.ClientCertificate != "" {
		i.pools.certificate = keep("client certificate of "+name, c.config, func(ctx context.Context) (tls.Certificate, error) {
			return readCertificate(ctx, c.config.Vault, a.ClientCertificate)
		})
	}
	return i
}

// Keys returns the signing keys, looked up in the vault; nil for none.
func (c *Clients) Keys(a Auth) outbox.SigningKeys {
	if len(a.SigningKeys) == 0 {
		return nil
	}
	return keep("signing keys", c.config, func(ctx context.Context) ([]outbox.SigningKey, error) {
		return readKeys(ctx, c.config.Vault, a.SigningKeys)
	}).get
}

// parse checks a target. No error quotes it: it may hold a credential.
func (c *Clients) parse(target string, a Auth) (*url.URL, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("the address is no https URL without a user name")
	}
	if err := a.Validate(); err != nil {
		return nil, err
	}
	switch inClear := u.Scheme == "http"; {
	case inClear && a.ClientCertificate != "":
		return nil, errors.New("clientCertificate: the address has to begin with https://")
	case inClear && !loopback(u) && (!c.config.Development || a.Audience != ""):
		return nil, errors.New("the address has to begin with https://")
	}
	return u, nil
}

// Announce logs whether a target can identify the caller; Client and Identified call it themselves.
func (c *Clients) Announce(name, target string, a Auth) {
	if u, err := url.Parse(target); err == nil {
		c.tell(name, u, a)
	}
}

func (c *Clients) tell(name string, target *url.URL, a Auth) {
	switch {
	case !a.None():
		c.config.Log.Info("calls carry identity", "setting", name, "target", target.Host, "identity", a.String())
	case !c.config.Development && !loopback(target):
		c.config.Log.Warn("calls carry no identity: the receiver cannot tell who sends; configure audience, signingKeys or clientCertificate",
			"setting", name, "target", target.Host)
	}
}

// identity returns the app's own credential, determined on first use.
func (c *Clients) identity() (azcore.TokenCredential, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.credential != nil {
		return c.credential, nil
	}
	found, err := c.config.Identity()
	if err == nil {
		c.credential = found
	}
	return found, err
}

// loopback reports whether an address is on this machine.
func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}

// hostOf returns the host of an address with its port, in lower case.
func hostOf(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
