// Package graphfake fakes Microsoft Graph and the login of Microsoft Entra ID for tests, as far as the passwords of
// applications go: an HTTP server with the difficulties of the real ones. A new password is listed and accepted only
// after a delay, a new application is not found for a while, its passwords are limited in number, requests are
// throttled, and answers get lost.
//
// It serves a loopback port (Start), or, for tests in virtual time, requests of its own process without a port (Do).
package graphfake

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Tenant is the tenant of the applications.
const Tenant = "5c1f7a0e-3d0b-4f57-8a44-0f6f2f6b9d10"

// Address is the address of both services for a client whose transport is Do.
const Address = "https://graph.fake"

// LoginToken is the login's answer to an accepted password.
const LoginToken = "a-token-that-nobody-keeps"

// token is the token that Graph accepts.
const token = "a-token-for-graph"

// Server is both services. Set its fields before the first request.
type Server struct {
	// Now is the clock; default time.Now.
	Now func() time.Time
	// ListedAfter and AcceptedAfter are the replication delays until a new password is listed, and accepted at the login.
	ListedAfter, AcceptedAfter time.Duration
	// FoundAfter is the delay until a new application is found.
	FoundAfter time.Duration
	// Limit is the most passwords of an application; 0 is no limit.
	Limit int

	mu           sync.Mutex
	applications map[string]*application
	faults       []Fault
	counts       map[string]int
	values       []string
	address      string
}

// application is an application with its passwords, oldest first.
type application struct {
	created   time.Time
	disabled  bool
	passwords []*password
}

// New returns a server without applications.
func New() *Server {
	return &Server{applications: map[string]*application{}, counts: map[string]int{}, address: Address}
}

// Start serves the loopback over TLS until the test ends. It returns the server's address, which replaces Address, and
// the options of a client that trusts it and does not delay a test.
func (s *Server) Start(t testing.TB) (address string, options *policy.ClientOptions) {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	s.address = server.URL
	return server.URL, &policy.ClientOptions{
		Transport: server.Client(),
		Retry:     policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: time.Second},
	}
}

// Do implements policy.Transporter: it serves a request in the goroutine of its sender.
func (s *Server) Do(req *http.Request) (resp *http.Response, err error) {
	defer func() {
		if cut := recover(); cut != nil {
			if cut != http.ErrAbortHandler { //nolint:errorlint // that very value is net/http's way to cut a connection
				panic(cut)
			}
			resp, err = nil, errors.New("the connection was cut")
		}
	}()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	served := req.Clone(req.Context())
	if served.Body == nil {
		served.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, served)
	resp = recorder.Result()
	resp.Request = req
	return resp, nil
}

// Tokens returns the accepted token, by the resource that a managed identity requests.
func (s *Server) Tokens() map[string]string { return map[string]string{s.address: token} }

// Credential returns a credential whose tokens this server accepts.
func (s *Server) Credential() azcore.TokenCredential { return credential{s} }

type credential struct{ server *Server }

// GetToken implements azcore.TokenCredential for the scope of this server only.
func (c credential) GetToken(_ context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if !slices.Equal(options.Scopes, []string{c.server.address + "/.default"}) {
		return azcore.AccessToken{}, errors.New("a token for another scope than Graph's")
	}
	return azcore.AccessToken{Token: token, ExpiresOn: c.server.now().Add(24 * time.Hour)}, nil
}

func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now().UTC()
	}
	return time.Now().UTC()
}

// AddApplication makes an application without passwords.
func (s *Server) AddApplication(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applications[id] = &application{created: s.now()}
}

// Disable makes the login refuse an application.
func (s *Server) Disable(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applications[id].disabled = true
}

// Add adds a password as another user does, and returns its key id.
func (s *Server) Add(id, displayName string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(s.applications[id], displayName, time.Time{}).KeyID
}

// Remove removes a password as another user does.
func (s *Server) Remove(id, keyID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	app := s.applications[id]
	app.passwords = slices.DeleteFunc(app.passwords, func(p *password) bool { return p.KeyID == keyID })
}

// Live returns the display names of the passwords of an application, by key id, listed yet or not.
func (s *Server) Live(id string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := map[string]string{}
	for _, p := range s.applications[id].passwords {
		live[p.KeyID] = p.DisplayName
	}
	return live
}

// Accepts reports whether the login accepts a value now.
func (s *Server) Accepts(id string, value []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted(s.applications[id], string(value)) == nil
}

// Values returns all values ever made. Only a secret store may hold them.
func (s *Server) Values() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.values)
}

// Count returns the number of requests whose path ends like this.
func (s *Server) Count(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for path, count := range s.counts {
		if strings.HasSuffix(path, action) {
			n += count
		}
	}
	return n
}

// Fault breaks one request.
type Fault struct {
	// Action is the end of the request's path, such as "/addPassword", "/removePassword", "/token", or "')" for a list.
	// The fault breaks the next such request.
	Action string
	// Applied reports whether the request takes effect before it is broken.
	Applied bool
	// Status is the status of the answer; 0 cuts the connection without an answer.
	Status int
	// Code and Message fill the error document of the answer; Body replaces it.
	Code, Message, Body string
	// RetryAfter is sent with the answer when it is set, in whole seconds.
	RetryAfter time.Duration
}

// Inject breaks the next requests, one for each fault.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// next counts a request and takes its fault.
func (s *Server) next(path string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[path]++
	at := slices.IndexFunc(s.faults, func(f Fault) bool { return strings.HasSuffix(path, f.Action) })
	if at < 0 {
		return nil
	}
	fault := s.faults[at]
	s.faults = slices.Delete(s.faults, at, at+1)
	return &fault
}

// Leaks returns the values that occur in a text, as they are or in base64.
func (s *Server) Leaks(text []byte) []string {
	var leaks []string
	for _, value := range s.Values() {
		for _, form := range forms(value) {
			if bytes.Contains(text, []byte(form)) {
				leaks = append(leaks, value)
				break
			}
		}
	}
	return leaks
}
