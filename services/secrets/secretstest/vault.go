package secretstest

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"
)

const (
	tenant   = "3f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11"
	resource = "https://vault.azure.net"
	token    = "a-token-for-tests"
	pageSize = 25 // of version lists, as Key Vault's
)

// Vault is a Key Vault on a loopback HTTPS server: the challenge for a token, versions with tags and attributes, lists
// in pages, in the order of version names and not of age, soft delete, and faults on demand.
type Vault struct {
	// Now is the vault's clock, time.Now when nil. Set it before the first request.
	Now func() time.Time

	server *httptest.Server

	mu      sync.Mutex
	secrets map[string]*secret // by lower-case name
	faults  []Fault
	counts  map[string]int
}

// secret is one secret with its versions, in the order of their names.
type secret struct {
	versions []*bundle
	deleted  bool
}

// NewVault starts a vault that ends with the test.
func NewVault(t testing.TB) *Vault {
	t.Helper()
	v := &Vault{secrets: map[string]*secret{}, counts: map[string]int{}}
	v.server = httptest.NewTLSServer(v)
	t.Cleanup(v.server.Close)
	return v
}

// URL returns the vault's address.
func (v *Vault) URL() string { return v.server.URL }

// Options returns those of a client of this vault, which trusts its certificate and retries without delaying a test.
func (v *Vault) Options() *azsecrets.ClientOptions {
	return &azsecrets.ClientOptions{
		ClientOptions: azcore.ClientOptions{
			Transport: v.server.Client(),
			Retry:     policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: time.Second},
		},
		// The vault is a loopback address, not a subdomain of the resource that the challenge names.
		DisableChallengeResourceVerification: true,
	}
}

// Credential returns a credential whose tokens this vault accepts.
func (v *Vault) Credential() azcore.TokenCredential { return staticCredential{} }

// Tokens returns the accepted tokens, by the resource that a managed identity requests.
func (v *Vault) Tokens() map[string]string { return map[string]string{resource: token} }

// Values returns the texts of all versions, disabled ones included.
func (v *Vault) Values() (texts []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.secrets {
		for _, b := range s.versions {
			texts = append(texts, b.Value)
		}
	}
	return texts
}

type staticCredential struct{}

// GetToken implements azcore.TokenCredential for the scope and tenant of the vault's challenge only.
func (staticCredential) GetToken(_ context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if !slices.Equal(options.Scopes, []string{resource + "/.default"}) || options.TenantID != tenant {
		return azcore.AccessToken{}, errors.New("a token for another scope or tenant than the challenge names")
	}
	return azcore.AccessToken{Token: token, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// unixNow returns the time in Key Vault's form.
func (v *Vault) unixNow() int64 {
	if v.Now != nil {
		return v.Now().Unix()
	}
	return time.Now().Unix()
}

// SoftDelete deletes a secret and leaves its name blocked.
func (v *Vault) SoftDelete(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.secrets[strings.ToLower(name)]; s != nil {
		s.deleted = true
	}
}

// Count returns the number of requests with a token and this HTTP method.
func (v *Vault) Count(method string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.counts[method]
}

// Fault breaks one request.
type Fault struct {
	// Method is the HTTP method of the request; the fault breaks the next one with a token.
	Method string
	// Applied reports whether the request takes effect before it is broken.
	Applied bool
	// Status is the status of the answer; 0 cuts the connection without an answer.
	Status int
	// Code, InnerCode and Message fill the error document of the answer.
	Code, InnerCode, Message string
	// RetryAfter is sent with the answer when set.
	RetryAfter time.Duration
	// Hang, when set, makes the client wait until it gives up. It is closed when the wait starts.
	Hang chan<- struct{}
}

// Inject breaks the next requests, one for each fault.
func (v *Vault) Inject(faults ...Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, faults...)
}

// next counts a request and returns its fault.
func (v *Vault) next(method string) *Fault {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts[method]++
	at := slices.IndexFunc(v.faults, func(f Fault) bool { return f.Method == method })
	if at < 0 {
		return nil
	}
	fault := v.faults[at]
	v.faults = slices.Delete(v.faults, at, at+1)
	return &fault
}
