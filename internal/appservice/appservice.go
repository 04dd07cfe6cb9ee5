// Package appservice is, for tests, what a process finds around it in Azure App Service: the endpoint that gives tokens to
// its managed identity, and certificates that it trusts. So a process of its own reaches wire-level servers as it reaches
// the real ones in production, with nothing but its environment.
package appservice

import (
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Server is the endpoint of an identity.
type Server struct {
	url    string
	header string
	tokens map[string]string
}

// Start starts the endpoint, which ends with the test. Each of tokens maps resources to what their servers take.
func Start(t testing.TB, tokens ...map[string]string) *Server {
	t.Helper()
	s := &Server{header: rand.Text(), tokens: map[string]string{}}
	for _, more := range tokens {
		maps.Copy(s.tokens, more)
	}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// Secrets are what nobody but the process and the servers should see: the header that the endpoint asks for, and the
// tokens.
func (s *Server) Secrets() []string {
	return append(slices.Collect(maps.Values(s.tokens)), s.header)
}

// Environment is what gives a process the identity and lets it trust the servers of net/http/httptest, which share one
// certificate, and those of authorities (PEM). It writes a file that lives as long as the test.
func (s *Server) Environment(t testing.TB, authorities ...[]byte) []string {
	t.Helper()
	any := httptest.NewTLSServer(http.NotFoundHandler())
	defer any.Close()
	trusted := append(authorities, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: any.Certificate().Raw}))
	file := filepath.Join(t.TempDir(), "trusted.pem")
	if err := os.WriteFile(file, slices.Concat(trusted...), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"SSL_CERT_FILE=" + file, "IDENTITY_ENDPOINT=" + s.url + "/msi/token", "IDENTITY_HEADER=" + s.header}
}

// serve answers as App Service does.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Query().Get("resource")
	token, known := s.tokens[resource]
	if r.Header.Get("X-IDENTITY-HEADER") != s.header || !known {
		http.Error(w, "the header or the resource is not the expected one", http.StatusBadRequest)
		return
	}
	expires := strconv.FormatInt(time.Now().Add(24*time.Hour).Unix(), 10)
	w.Header().Set("Content-Type", "application/json")
	// A client that went away is its own business.
	_ = json.NewEncoder(w).Encode(map[string]string{"access_token": token, "expires_on": expires, "resource": resource, "token_type": "Bearer"})
}
