package marketplacefake

import (
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

// AutoAccept is when the marketplace takes a change of plan or quantity as accepted that nobody has acknowledged.
const AutoAccept = 10 * time.Second

const (
	saasToken    = "a-token-for-the-marketplace"
	armToken     = "a-token-for-management"
	saasResource = "20e940b3-4c77-4b0b-9a53-9e16a1b010a7"
	armResource  = "https://management.azure.com"
	allScopes    = "/.default"
)

// Market is the marketplace and the resource manager. It is ready as New makes it.
type Market struct {
	// Now is the clock, time.Now when nil. Set it before the first request.
	Now func() time.Time

	mu            sync.Mutex
	subscriptions map[string]*Subscription
	operations    map[string]*Operation
	applications  map[string]string // provisioning states by lower-case id
	faults        []Fault
	requests      []string
}

// Subscription is a SaaS subscription.
type Subscription struct {
	ID, PlanID, Status, TenantID string
	// Quantity is written as it is, so it may be a number, a text or null; nil is null.
	Quantity any
}

// Operation is a change of a subscription.
type Operation struct {
	ID, SubscriptionID, Action, PlanID, Status string
	Quantity                                   any
	// At is when it began; the zero value is the time at which it is put.
	At time.Time
}

// Fault spoils one request.
type Fault struct {
	// Method is that of the request; the next one is meant. "" means any.
	Method string
	// After is how many such requests pass before.
	After int
	// Applied says whether the request takes effect before it is spoilt.
	Applied bool
	// Status is what is answered; 0 cuts the connection without an answer.
	Status int
}

// New is a market without anything in it.
func New() *Market {
	return &Market{subscriptions: map[string]*Subscription{}, operations: map[string]*Operation{}, applications: map[string]string{}}
}

// PutSubscription adds or replaces a subscription.
func (m *Market) PutSubscription(s Subscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subscriptions[s.ID] = &s
}

// PutOperation adds or replaces an operation.
func (m *Market) PutOperation(o Operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.At.IsZero() {
		o.At = m.now()
	}
	m.operations[o.ID] = &o
}

// PutApplication adds or replaces a managed application; without a provisioning state it is removed.
func (m *Market) PutApplication(id, provisioningState string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if provisioningState == "" {
		delete(m.applications, strings.ToLower(id))
		return
	}
	m.applications[strings.ToLower(id)] = provisioningState
}

// OperationStatus is where an operation stands, "" for one that does not exist.
func (m *Market) OperationStatus(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.operations[id]; o != nil {
		m.settle(o)
		return o.Status
	}
	return ""
}

// SubscriptionStatus is where a subscription stands, "" for one that does not exist.
func (m *Market) SubscriptionStatus(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.subscriptions[id]; s != nil {
		return s.Status
	}
	return ""
}

// Inject spoils the next requests, one for each fault.
func (m *Market) Inject(faults ...Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, faults...)
}

// Requests lists the requests with a token, as "METHOD /path".
func (m *Market) Requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

func (m *Market) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// settle accepts what nobody has acknowledged in time.
func (m *Market) settle(o *Operation) {
	waits := o.Action == "ChangePlan" || o.Action == "ChangeQuantity"
	if waits && o.Status == "InProgress" && m.now().Sub(o.At) >= AutoAccept {
		m.conclude(o, "Succeeded")
	}
}

// conclude ends an operation; one that succeeds changes its subscription.
func (m *Market) conclude(o *Operation, status string) {
	o.Status = status
	s := m.subscriptions[o.SubscriptionID]
	if s == nil || status != "Succeeded" {
		return
	}
	switch o.Action {
	case "ChangePlan":
		s.PlanID = o.PlanID
	case "ChangeQuantity":
		s.Quantity = o.Quantity
	case "Reinstate":
		s.Status = "Subscribed"
	}
}

// Serve puts the market on a loopback HTTPS server that ends with the test, and returns the server.
func (m *Market) Serve(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(m)
	t.Cleanup(server.Close)
	return server
}

// Transport carries requests to the market without a socket.
func (m *Market) Transport() policy.Transporter { return transport{m} }

type transport struct{ handler http.Handler }

// Do implements policy.Transporter.
func (t transport) Do(req *http.Request) (resp *http.Response, err error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			resp, err = nil, errors.New("connection reset by peer")
		} else if p != nil {
			panic(p)
		}
	}()
	in := req.Clone(req.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	t.handler.ServeHTTP(recorder, in)
	return recorder.Result(), nil
}

// Options make a client of this market through Transport, whose retries do not make a test wait.
func (m *Market) Options() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: m.Transport(), Retry: policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: 10 * time.Millisecond}}
}

// Tokens is what this market takes, by the resource that a managed identity asks for.
func (m *Market) Tokens() map[string]string {
	return map[string]string{saasResource: saasToken, armResource: armToken}
}

// Credential gets tokens that this market takes.
func (m *Market) Credential() azcore.TokenCredential { return credential{} }

type credential struct{}

// GetToken implements azcore.TokenCredential for the two scopes that exist here.
func (credential) GetToken(_ context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token := ""
	switch {
	case slices.Equal(options.Scopes, []string{saasResource + allScopes}):
		token = saasToken
	case slices.Equal(options.Scopes, []string{armResource + allScopes}):
		token = armToken
	default:
		return azcore.AccessToken{}, errors.New("a token for a scope that nobody has")
	}
	return azcore.AccessToken{Token: token, ExpiresOn: time.Now().Add(24 * time.Hour)}, nil
}
