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

// URL is the vault's address.
func (v *Vault) URL() string { return v.server.URL }

// Options makes a client of this vault: trusting its certificate, and retrying without making a test wait.
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

// Credential gets tokens that this vault takes.
func (v *Vault) Credential() azcore.TokenCredential { return staticCredential{} }

// Tokens is what this vault takes, by the resource that a managed identity asks for.
func (v *Vault) Tokens() map[string]string { return map[string]string{resource: token} }

// Values are the texts of all versions, disabled ones too.
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

// GetToken implements azcore.TokenCredential for the scope and tenant of the vault's challenge alone.
func (staticCredential) GetToken(_ context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if !slices.Equal(options.Scopes, []string{resource + "/.default"}) || options.TenantID != tenant {
		return azcore.AccessToken{}, errors.New("a token for another scope or tenant than the challenge names")
	}
	return azcore.AccessToken{Token: token, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// unixNow is the clock as Key Vault shows it.
func (v *Vault) unixNow() int64 {
	if v.Now != nil {
		return v.Now().Unix()
	}
	return time.Now().Unix()
}

// SoftDelete deletes a secret, which leaves its name blocked.
func (v *Vault) SoftDelete(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.secrets[strings.ToLower(name)]; s != nil {
		s.deleted = true
	}
}

// Count is the number of requests with a token that came with the HTTP method.
func (v *Vault) Count(method string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.counts[method]
}

// Fault spoils one request.
type Fault struct {
	// Method is the HTTP method of the request; the next one with a token is meant.
	Method string
	// Applied says whether the request takes effect before it is spoilt.
	Applied bool
	// Status is what is answered; 0 cuts the connection without an answer.
	Status int
	// Code, InnerCode and Message fill the error document of the answer.
	Code, InnerCode, Message string
	// RetryAfter is sent with the answer when set.
	RetryAfter time.Duration
	// Hang, when set, keeps the client waiting until it gives up. It is closed when the wait begins.
	Hang chan<- struct{}
}

// Inject spoils the next requests, one for each fault.
func (v *Vault) Inject(faults ...Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, faults...)
}

// next counts a request and takes the fault that is meant for it.
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
