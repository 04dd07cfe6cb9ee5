package outbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// HeaderIdempotencyKey is the header with the event's key, which is the same in every attempt.
const HeaderIdempotencyKey = "Idempotency-Key"

// These are the defaults of HTTPConfig.
const (
	DefaultTimeout       = 10 * time.Second
	DefaultMaxRetryAfter = time.Hour
)

const (
	// maxConns is the most connections to one destination. Further deliveries to it wait, within their timeout.
	maxConns = 64
	// idleConn is below the four minutes after which Azure's load balancer drops a connection.
	idleConn = 90 * time.Second
	// pingAfter and pingTimeout detect a dead HTTP/2 connection.
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second
	// maxAnswerHeader bounds the headers of an answer in memory.
	maxAnswerHeader = 64 << 10
	userAgent       = "roundhouse-outbox"
)

// HTTPConfig configures an HTTP destination.
type HTTPConfig struct {
	// URL receives the events by POST. It is absolute, https, and without user, password and fragment. Its path or query
	// may hold an access key, so errors name the host only. Required.
	URL string
	// Source and Subject are the attributes source and subject of the CloudEvents. {tenant} and {type} in them are
	// replaced by those of the event, escaped in the source. Source is a URI reference and required. It has to contain
	// {tenant} if keys are unique only within a tenant and the receiver identifies an event by source and id. The default
	// Subject is "{tenant}".
	Source, Subject string
	// Structured sends the whole event as JSON (application/cloudevents+json). The default is the binary mode, whose
	// attributes are headers that no signature covers.
	Structured bool
	// Keys signs the requests. Nil sends them unsigned.
	Keys SigningKeys
	// Identify adds the sender's identity to requests, besides signatures: a token, or the certificate of a connection. It
	// wraps the transport in the round tripper to use, which returns an error only when no answer came. Nil adds nothing.
	Identify func(connections *http.Transport) (http.RoundTripper, error)
	// Timeout bounds an attempt, from looking up keys and host to the end of the answer. Zero is DefaultTimeout.
	Timeout time.Duration
	// MaxRetryAfter bounds the delay that an answer may ask for. Zero is DefaultMaxRetryAfter.
	MaxRetryAfter time.Duration
	// AllowPlaintext accepts http URLs as well.
	AllowPlaintext bool
	// Allow lists the allowed destinations besides public addresses: networks ("127.0.0.0/8"), addresses ("10.1.2.3") and
	// host names ("hooks.internal"). A listed host name may resolve to a loopback, private, shared (100.64.0.0/10) or
	// unique local address, so its owner is trusted with that. Any other non-public address, such as cloud metadata
	// (169.254.169.254), needs its network or address listed.
	Allow []string
	// RootCAs are the trusted certificate authorities; nil is the system's.
	RootCAs *x509.CertPool
	// Resolver looks up host names; nil is the system's.
	Resolver *net.Resolver
	// Dial replaces the network, for tests, without a check of addresses. Nil is the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Now is the clock of signatures and of Retry-After dates; nil is time.Now.
	Now func() time.Time
}

// Validate returns all errors of a configuration, as one ErrInvalid.
func (c HTTPConfig) Validate() error {
	_, err := c.build()
	return err
}

// HTTP is a Transport to one HTTP destination. It has its own connections, so that one destination cannot slow down
// others. It is safe for concurrent use.
//
// It calls public and allowed addresses only, follows no redirect, uses no proxy, and requires TLS 1.2 or later.
//
// These failures are permanent: 3xx (the error names the host of the redirect), 4xx other than 408, 425 and 429, and
// 501 and 505, because a repeated request would be refused again. So are a forbidden destination, because an operator
// has to act, and an event that cannot be encoded. All other failures are transient: other answers, timeouts,
// connection errors, and certificates that cannot be verified, because certificates are renewed and nothing was sent.
// Without signing keys, the error is an ErrMisconfigured.
type HTTP struct {
	destination   *url.URL
	origin        origin
	structured    bool
	keys          SigningKeys
	timeout       time.Duration
	maxRetryAfter time.Duration
	now           func() time.Time
	// sender is used without an http.Client, which would follow redirects and put the URL into errors. It sends over pool.
	sender http.RoundTripper
	pool   *http.Transport
}

var _ Transport = (*HTTP)(nil)

// NewHTTP validates a configuration and returns its Transport. It sends no request yet.
func NewHTTP(c HTTPConfig) (*HTTP, error) {
	return c.build()
}

func (c HTTPConfig) build() (*HTTP, error) {
	allow, errAllow := parseAllow(c.Allow)
	destination, errURL := allow.parseDestination(c.URL, c.AllowPlaintext)
	from, errOrigin := newOrigin(c.Source, c.Subject)
	var errTimes error
	if c.Timeout < 0 || c.MaxRetryAfter < 0 {
		errTimes = fmt.Errorf("timeout %v, longest Retry-After %v: negative times are not allowed", c.Timeout, c.MaxRetryAfter)
	}
	if err := errors.Join(errURL, errOrigin, errAllow, errTimes); err != nil {
		return nil, fmt.Errorf("HTTP transport: %w: %w", ErrInvalid, err)
	}
	h := &HTTP{
		destination: destination, origin: from, structured: c.Structured, keys: c.Keys, now: c.Now,
		timeout: cmp.Or(c.Timeout, DefaultTimeout), maxRetryAfter: cmp.Or(c.MaxRetryAfter, DefaultMaxRetryAfter),
	}
	if h.now == nil {
		h.now = time.Now
	}
	h.pool = &http.Transport{
		DialContext:            allow.dial(c.Resolver, h.timeout),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.RootCAs},
		TLSHandshakeTimeout:    h.timeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		MaxConnsPerHost:        maxConns,
		MaxIdleConnsPerHost:    maxConns,
		IdleConnTimeout:        idleConn,
		MaxResponseHeaderBytes: maxAnswerHeader,
		DisableCompression:     true,
	}
	if c.Dial != nil {
		h.pool.DialContext = c.Dial
	}
	h.sender = h.pool
	if c.Identify != nil {
		var err error
		if h.sender, err = c.Identify(h.pool); err != nil {
			return nil, fmt.Errorf("HTTP transport: %w: %w", ErrInvalid, err)
		}
	}
	return h, nil
}

// Close closes the idle connections. Running deliveries continue.
func (h *HTTP) Close() error {
	h.pool.CloseIdleConnections()
	if more, ok := h.sender.(interface{ CloseIdleConnections() }); ok {
		more.CloseIdleConnections()
	}
	return nil
}

// Deliver sends an event once; net/http itself repeats a request if a kept connection turns out to be closed. Every
// error is a *DeliveryError; errors.Is finds ErrDestination and the context's errors.
func (h *HTTP) Deliver(ctx context.Context, e Event) error {
	attempt, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	request, err := h.request(attempt, e)
	if err != nil {
		return err
	}
	response, err := h.sender.RoundTrip(request)
	if err != nil {
		if errors.Is(attempt.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("no answer in time, which is %v at most: %w", h.timeout, err)
		}
		return h.connectionFailed(err)
	}
	defer func() { _ = response.Body.Close() }()
	return h.checkAnswer(response)
}

func (h *HTTP) request(ctx context.Context, e Event) (*http.Request, error) {
	event, err := h.origin.toCloudEvent(e)
	if err != nil {
		return nil, &DeliveryError{Permanent: true, Err: fmt.Errorf("post to %s: %w", h.destination.Host, err)}
	}
	body, contentType := []byte(event.Data), event.DataContentType
	if h.structured {
		contentType = structuredType
		if body, err = event.encode(); err != nil {
			return nil, &DeliveryError{Permanent: true, Err: fmt.Errorf("post to %s: %w", h.destination.Host, err)}
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.destination.String(), bytes.NewReader(body))
	if err != nil {
		// unreachable: parseDestination accepted this URL
		return nil, &DeliveryError{Permanent: true, Err: fmt.Errorf("post to %s: the request cannot be made", h.destination.Host)}
	}
	if !h.structured {
		event.putHeaders(r.Header)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("User-Agent", userAgent)
	r.Header.Set(HeaderIdempotencyKey, event.ID)
	if event.TraceParent != "" {
		r.Header.Set("traceparent", event.TraceParent)
	}
	if h.keys == nil {
		return r, nil
	}
	keys, err := h.keys(ctx)
	if err == nil {
		err = Sign(r.Header, event.ID, h.now(), body, keys)
	}
	if err != nil {
		return nil, &DeliveryError{Err: fmt.Errorf("post to %s: %w: signing keys: %w", h.destination.Host, ErrMisconfigured, err)}
	}
	return r, nil
}
