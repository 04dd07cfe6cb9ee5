// Package tlstarget serves a certificate, for tests: a TLS server, and an address for announcements of new versions,
// which it fetches from the store as real targets do.
package tlstarget

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Fetch returns a certificate version from the store, with its key.
type Fetch func(name, version string) (tls.Certificate, error)

// Target serves certificates, none at first: the one for the requested name.
type Target struct {
	notify *httptest.Server
	listen net.Listener

	mu       sync.Mutex
	fetch    Fetch
	serving  map[string]*tls.Certificate // by the certificate's name in the store
	next     map[string]*tls.Certificate // served after the next handshake
	answers  []int
	leafOnly bool
	late     bool
	headers  []http.Header
	bodies   []map[string]any
}

// Start starts a target that ends with the test.
func Start(t testing.TB, fetch Fetch) *Target {
	t.Helper()
	g := &Target{fetch: fetch, serving: map[string]*tls.Certificate{}, next: map[string]*tls.Certificate{}}
	g.notify = httptest.NewUnstartedServer(http.HandlerFunc(g.told))
	g.notify.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it are part of tests
	g.notify.StartTLS()
	t.Cleanup(g.notify.Close)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return g.current(hello.ServerName), nil }})
	if err != nil {
		t.Fatal(err)
	}
	g.listen = listener
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				if secure, ok := conn.(*tls.Conn); ok {
					// The client reports a failed handshake.
					_ = secure.HandshakeContext(t.Context())
				}
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		conns.Wait()
	})
	return g
}

// Address returns the address of the TLS server.
func (g *Target) Address() string { return g.listen.Addr().String() }

// NotifyURL returns the address for announcements of new versions.
func (g *Target) NotifyURL() string { return g.notify.URL + "/certificate" }

// Client returns an HTTP client that trusts NotifyURL.
func (g *Target) Client() *http.Client { return g.notify.Client() }

// Answer makes it answer the next requests with these statuses and do nothing; 0 cuts the connection. It replaces the
// statuses of an earlier call.
func (g *Target) Answer(statuses ...int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers = statuses
}

// LeafOnly makes it serve the certificate without the rest of its chain.
func (g *Target) LeafOnly(yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leafOnly = yes
}

// Told returns the bodies of the accepted requests.
func (g *Target) Told() []map[string]any {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]map[string]any(nil), g.bodies...)
}

// Keys returns the idempotency keys of the accepted requests.
func (g *Target) Keys() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var keys []string
	for _, h := range g.headers {
		keys = append(keys, h.Get("Idempotency-Key"))
	}
	return keys
}

// Headers returns those of the accepted requests.
func (g *Target) Headers() []http.Header {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]http.Header(nil), g.headers...)
}

// told fetches the announced version and serves it.
func (g *Target) told(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.answers) > 0 {
		status := g.answers[0]
		g.answers = g.answers[1:]
		if status == 0 {
			// net/http's way to drop a connection without an answer.
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
		return
	}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name, _ := body["name"].(string)
	version, _ := body["version"].(string)
	fetched, err := g.fetch(name, version)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	g.next[name] = &fetched
	if !g.late {
		maps.Copy(g.serving, g.next)
	}
	g.headers, g.bodies = append(g.headers, r.Header), append(g.bodies, body)
	w.WriteHeader(http.StatusAccepted)
}

// Late makes it serve an announced version only after the next handshake.
func (g *Target) Late(yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.late = yes
}

// current returns the served certificate of a name; without one, the handshake fails.
func (g *Target) current(name string) *tls.Certificate {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer maps.Copy(g.serving, g.next)
	var found *tls.Certificate
	for _, one := range g.serving {
		leaf, err := x509.ParseCertificate(one.Certificate[0])
		if err == nil && (found == nil || leaf.VerifyHostname(name) == nil) {
			found = one
		}
	}
	if found == nil || !g.leafOnly {
		return found
	}
	alone := *found
	alone.Certificate = alone.Certificate[:1]
	return &alone
}
