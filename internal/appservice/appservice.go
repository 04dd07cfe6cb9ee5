// Package appservice simulates, for tests, the environment of a process in Azure App Service: the token endpoint of its
// managed identity, and trusted certificates. A child process reaches wire-level fake servers as it reaches the real
// ones in production, by its environment alone.
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

// Server is the token endpoint of an identity.
type Server struct {
	url    string
	header string
	tokens map[string]string
}

// Start starts the endpoint, which ends with the test. Each of tokens maps resources to the tokens that their servers
// accept.
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

// Secrets returns the secrets of the process and the servers: the endpoint's header, and the tokens.
func (s *Server) Secrets() []string {
	return append(slices.Collect(maps.Values(s.tokens)), s.header)
}

// Environment returns the variables that give a process the identity, and trust in the servers of net/http/httptest,
// which share one certificate, and in those of authorities (PEM). It writes a file that is deleted with the test.
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

// serve answers like App Service.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Query().Get("resource")
	token, known := s.tokens[resource]
	if r.Header.Get("X-IDENTITY-HEADER") != s.header || !known {
		http.Error(w, "the header or the resource is not the expected one", http.StatusBadRequest)
		return
	}
	expires := strconv.FormatInt(time.Now().Add(24*time.Hour).Unix(), 10)
	w.Header().Set("Content-Type", "application/json")
	// Ignore a client that disconnected.
	_ = json.NewEncoder(w).Encode(map[string]string{"access_token": token, "expires_on": expires, "resource": resource, "token_type": "Bearer"})
}
