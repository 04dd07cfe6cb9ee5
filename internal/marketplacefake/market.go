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

// AutoAccept is the time after which the marketplace accepts an unacknowledged change of plan or quantity.
const AutoAccept = 10 * time.Second

const (
	saasToken    = "a-token-for-the-marketplace"
	armToken     = "a-token-for-management"
	saasResource = "20e940b3-4c77-4b0b-9a53-9e16a1b010a7"
	armResource  = "https://management.azure.com"
	allScopes    = "/.default"
)

// Market is the marketplace and the resource manager. Make one with New.
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
	// Quantity is written as it is: a number, a text or null; nil is null.
	Quantity any
}

// Operation is a change of a subscription.
type Operation struct {
	ID, SubscriptionID, Action, PlanID, Status string
	Quantity                                   any
	// At is its start; the zero value is the time of PutOperation.
	At time.Time
}

// Fault breaks one request.
type Fault struct {
	// Method is that of the broken request; "" means any.
	Method string
	// After is the number of such requests that pass before.
	After int
	// Applied reports whether the request takes effect before it is broken.
	Applied bool
	// Status is the status of the answer; 0 cuts the connection without an answer.
	Status int
}

// New returns an empty market.
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

// OperationStatus returns the status of an operation, "" for an unknown one.
func (m *Market) OperationStatus(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.operations[id]; o != nil {
		m.settle(o)
		return o.Status
	}
	return ""
}

// SubscriptionStatus returns the status of a subscription, "" for an unknown one.
func (m *Market) SubscriptionStatus(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.subscriptions[id]; s != nil {
		return s.Status
	}
	return ""
}

// Inject breaks the next requests, one for each fault.
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

// settle accepts an operation that was not acknowledged in time.
func (m *Market) settle(o *Operation) {
	waits := o.Action == "ChangePlan" || o.Action == "ChangeQuantity"
	if waits && o.Status == "InProgress" && m.now().Sub(o.At) >= AutoAccept {
		m.conclude(o, "Succeeded")
	}
}

// conclude ends an operation; a successful one changes its subscription.
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

// Serve runs the market on a loopback HTTPS server that ends with the test, and returns the server.
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

// Options returns those of a client of this market through Transport, whose retries do not delay a test.
func (m *Market) Options() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: m.Transport(), Retry: policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: 10 * time.Millisecond}}
}

// Tokens returns the accepted tokens, by the resource that a managed identity requests.
func (m *Market) Tokens() map[string]string {
	return map[string]string{saasResource: saasToken, armResource: armToken}
}

// Credential returns a credential whose tokens this market accepts.
func (m *Market) Credential() azcore.TokenCredential { return credential{} }

type credential struct{}

// GetToken implements azcore.TokenCredential for the two scopes of this market.
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
