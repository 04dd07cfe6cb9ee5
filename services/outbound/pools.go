package outbound

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/vibedata/roundhouse/outbox"
)

// pools has the connections of a target. All connections of a pool present the same client certificate, so that the
// record of a request matches its connection; another certificate gets another pool.
type pools struct {
	base        *http.Transport
	certificate *kept[tls.Certificate] // nil for none

	mu          sync.Mutex
	current     *http.Transport
	fingerprint string
}

// get returns the pool for a request, and the fingerprint of its certificate, "" for none.
func (p *pools) get(ctx context.Context) (*http.Transport, string, error) {
	if p.certificate == nil {
		return p.base, "", nil
	}
	certificate, err := p.certificate.get(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", outbox.ErrMisconfigured, err)
	}
	sum := sha256.Sum256(certificate.Leaf.Raw)
	fingerprint := hex.EncodeToString(sum[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil || p.fingerprint != fingerprint {
		if p.current != nil {
			p.current.CloseIdleConnections() // running requests continue
		}
		p.current, p.fingerprint = presenting(p.base, &certificate), fingerprint
	}
	return p.current, fingerprint, nil
}

func (p *pools) close() {
	p.base.CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		p.current.CloseIdleConnections()
	}
}

// presenting returns base with a client certificate, over HTTP/1.1 and without proxies: it makes the handshakes itself,
// to detect whether the certificate was requested.
func presenting(base *http.Transport, certificate *tls.Certificate) *http.Transport {
	t := base.Clone()
	dial := t.DialContext
	if dial == nil {
		dial = (&net.Dialer{Timeout: handshakeTimeout}).DialContext
	}
	config := t.TLSClientConfig
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.Proxy, t.ForceAttemptHTTP2, t.HTTP2 = nil, false, nil
	t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		secure, err := handshake(ctx, raw, config.Clone(), address, certificate)
		if err != nil {
			_ = raw.Close()
			return nil, err
		}
		return secure, nil
	}
	return t
}

func handshake(ctx context.Context, raw net.Conn, config *tls.Config, address string, certificate *tls.Certificate) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address of the target: %w", err)
	}
	asked := false
	if config.ServerName == "" {
		config.ServerName = host
	}
	config.NextProtos = []string{"http/1.1"}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = true
		return certificate, nil
	}
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if !asked {
		return nil, ErrNotAsked
	}
	return secure, nil
}
