// Package pebble runs an ACME authority for tests, in process: Pebble, which validates challenges for real, over HTTP
// and DNS servers on the loopback interface.
//
// It is for tests only. A goroutine of Pebble's outlives each server; [IgnoreLeak] makes goleak ignore it.
package pebble

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"go.uber.org/goleak"
)

// Paths of the authority, for Refuse and Count.
const (
	Account  = "/sign-me-up"
	NewOrder = "/order-plz"
	Order    = "/my-order/"
	Finalize = "/finalize-order/"
	Answer   = "/chalZ/"
	Revoke   = "/revoke-cert"

	RenewalInfo = "/draft-ietf-acme-ari-03/renewalInfo/"
)

// Options change a Server.
type Options struct {
	// Validity is the validity of certificates; default 90 days.
	Validity time.Duration
	// Blocked are domains for which the authority issues no certificates; of two labels, since Pebble breaks on shorter
	// names.
	Blocked []string
	// RejectNonces is the percentage of valid nonces that are refused, as real authorities do occasionally; each costs the
	// client a quarter of a second.
	RejectNonces int
	// Resolver is the authority's name server, as host:port; "" is one that resolves all domains to 127.0.0.1.
	Resolver string
	// WithoutRenewalInfo hides the authority's renewal information.
	WithoutRenewalInfo bool
}

// Server is an authority.
type Server struct {
	// Challenges answers the authority's http-01 requests; 404 when nil. Set it before the first order.
	Challenges http.Handler

	server *httptest.Server
	front  wfe.WebFrontEndImpl
	ca     *ca.CAImpl

	one sync.Mutex // request at a time

	mu       sync.Mutex
	refusals []Refusal
	counts   map[string]int
}

// environment guards the environment variables that Pebble reads while a server is made.
var environment sync.Mutex

// configure sets Pebble's own settings.
func configure(t testing.TB, rejectNonces int) {
	t.Helper()
	for name, value := range map[string]string{"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": strconv.Itoa(rejectNonces), "PEBBLE_AUTHZREUSE": "0"} {
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

// IgnoreLeak makes goleak ignore Pebble's goroutine.
func IgnoreLeak() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/letsencrypt/pebble/v2/va.VAImpl.processTasks")
}

// Start starts an authority that ends with the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Validity == 0 {
		o.Validity = 90 * 24 * time.Hour
	}
	if o.Resolver == "" {
		o.Resolver = names{}.start(t)
	}
	s := &Server{counts: map[string]int{}}
	challenges := httptest.NewServer(http.HandlerFunc(s.challenge))
	t.Cleanup(challenges.Close)
	port := challenges.Listener.Addr().(*net.TCPAddr).Port
	environment.Lock()
	defer environment.Unlock()
	configure(t, o.RejectNonces)
	quiet, store := log.New(io.Discard, "", 0), db.NewMemoryStore()
	for _, domain := range o.Blocked {
		if err := store.AddBlockedDomain(domain); err != nil {
			t.Fatal(err)
		}
	}
	s.ca = ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "tests", ValidityPeriod: uint64(o.Validity / time.Second)}})
	validation := va.New(quiet, port, port, true, o.Resolver, store)
	s.front = wfe.New(quiet, store, validation, s.ca, []string{"pebble.letsencrypt.org"}, true, false, 0, 0)
	handler := s.front.Handler()
	s.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.refuse(w, r) {
			return
		}
		if o.WithoutRenewalInfo && r.URL.Path == wfe.DirectoryPath {
			directoryWithout(w, r, handler, "renewalInfo")
			return
		}
		// Pebble's own handlers race with each other when two clients share an account.
		s.one.Lock()
		defer s.one.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	return s
}

// Directory returns the address of the directory.
func (s *Server) Directory() string { return s.server.URL + wfe.DirectoryPath }

// Client returns an HTTP client that trusts the authority's own address.
func (s *Server) Client() *http.Client { return s.server.Client() }

// Roots returns the roots of the authority's certificates.
func (s *Server) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.ca.GetRootCert(0).Cert)
	return pool
}

// RootPEM returns the only root of Roots, for a file that another process trusts.
func (s *Server) RootPEM() []byte { return s.ca.GetRootCert(0).PEM() }

// SuggestRenewal sets the window in which the authority suggests the renewal of a certificate (DER), and the page that
// explains it, "" for none.
func (s *Server) SuggestRenewal(t testing.TB, leaf []byte, from, to time.Time, explanation string) {
	t.Helper()
	window, err := json.Marshal(map[string]any{"suggestedWindow": map[string]time.Time{"start": from, "end": to}, "explanationURL": explanation})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"Certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf})), "ARIResponse": string(window)})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/set-renewal-info/", bytes.NewReader(body))
	r.Header.Set("User-Agent", "tests")
	w := httptest.NewRecorder()
	s.front.ManagementHandler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("set renewal info: %d %s", w.Code, w.Body)
	}
}

// Revoked reports whether a certificate (DER) is revoked.
func (s *Server) Revoked(t testing.TB, leaf []byte) bool {
	t.Helper()
	certificate, err := x509.ParseCertificate(leaf)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/cert-status-by-serial/%x", certificate.SerialNumber), nil)
	r.Header.Set("User-Agent", "tests")
	w := httptest.NewRecorder()
	s.front.ManagementHandler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("certificate status: %d %s", w.Code, w.Body)
	}
	return strings.Contains(w.Body.String(), `"Revoked"`)
}

// Refusal is an error answer of the authority.
type Refusal struct {
	// Path is the prefix of the path of the next request to refuse.
	Path string
	// Status, Type ("rateLimited") and Detail are the problem.
	Status       int
	Type, Detail string
	// RetryAfter is the header of that name; "" for none.
	RetryAfter string
}

// Refuse refuses the next requests, one for each.
func (s *Server) Refuse(refusals ...Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = append(s.refusals, refusals...)
}

// Forgive drops the unused refusals.
func (s *Server) Forgive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = nil
}

// Count returns the number of requests whose path has this prefix, deliberately refused ones included.
func (s *Server) Count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for at, count := range s.counts {
		if strings.HasPrefix(at, path) {
			n += count
		}
	}
	return n
}

// refuse counts a request, and answers it if it has a refusal.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[r.URL.Path]++
	at := slices.IndexFunc(s.refusals, func(f Refusal) bool { return strings.HasPrefix(r.URL.Path, f.Path) })
	if at < 0 {
		return false
	}
	refusal := s.refusals[at]
	s.refusals = slices.Delete(s.refusals, at, at+1)
	if refusal.RetryAfter != "" {
		w.Header().Set("Retry-After", refusal.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(refusal.Status)
	// Ignore a client that disconnected.
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "urn:ietf:params:acme:error:" + refusal.Type, "detail": refusal.Detail, "status": refusal.Status})
	return true
}

// challenge answers the authority's http-01 requests.
func (s *Server) challenge(w http.ResponseWriter, r *http.Request) {
	if s.Challenges == nil || !strings.HasPrefix(r.URL.Path, "/.well-known/acme-challenge/") {
		http.NotFound(w, r)
		return
	}
	s.Challenges.ServeHTTP(w, r)
}

// directoryWithout serves the directory without one of its entries.
func directoryWithout(w http.ResponseWriter, r *http.Request, handler http.Handler, entry string) {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	directory := map[string]any{}
	if err := json.Unmarshal(recorder.Body.Bytes(), &directory); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	delete(directory, entry)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(directory)
}
