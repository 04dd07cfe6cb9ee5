// Package certificatestest is the test kit of package certificates: a Key Vault on an HTTPS server, for all packages
// that keep certificates in a vault.
package certificatestest

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azcertificates"
)

const (
	tenant   = "3f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11"
	resource = "https://vault.azure.net"
	token    = "a-token-for-tests"
	pageSize = 25 // of version lists, as Key Vault's
)

// Vault is a Key Vault on a loopback HTTPS server, for certificates of unknown authorities: the challenge for a token,
// requests with their keys, merges, versions in pages and in the order of their names, soft delete, and faults on
// demand.
type Vault struct {
	// Now is the vault's clock, time.Now when nil. Set it before the first request.
	Now func() time.Time

	server *httptest.Server

	mu           sync.Mutex
	certificates map[string]*certificate // by lower-case name
	faults       []Fault
	counts       map[string]int
}

// certificate is one certificate with its versions, in the order of their names, and the pending request.
type certificate struct {
	versions []*version
	pending  *pending
	deleted  bool
}

// NewVault starts a vault that ends with the test.
func NewVault(t testing.TB) *Vault {
	t.Helper()
	v := &Vault{certificates: map[string]*certificate{}, counts: map[string]int{}}
	v.server = httptest.NewTLSServer(v)
	t.Cleanup(v.server.Close)
	return v
}

// URL returns the vault's address.
func (v *Vault) URL() string { return v.server.URL }

// Options returns those of a client of this vault, which trusts its certificate and retries without delaying a test.
func (v *Vault) Options() *azcertificates.ClientOptions {
	return &azcertificates.ClientOptions{
		ClientOptions: azcore.ClientOptions{
			Transport: v.server.Client(),
			Retry:     policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: time.Second},
		},
		// The vault is a loopback address, not a subdomain of the resource that the challenge names.
		DisableChallengeResourceVerification: true,
	}
}

// Client returns an HTTP client that trusts the vault.
func (v *Vault) Client() *http.Client { return v.server.Client() }

// Credential returns a credential whose tokens this vault accepts.
func (v *Vault) Credential() azcore.TokenCredential { return staticCredential{} }

type staticCredential struct{}

// GetToken implements azcore.TokenCredential for the scope and tenant of the vault's challenge only.
func (staticCredential) GetToken(_ context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if !slices.Equal(options.Scopes, []string{resource + "/.default"}) || options.TenantID != tenant {
		return azcore.AccessToken{}, errors.New("a token for another scope or tenant than the challenge names")
	}
	return azcore.AccessToken{Token: token, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// SoftDelete deletes a certificate and leaves its name blocked.
func (v *Vault) SoftDelete(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.certificate(name).deleted = true
}

// KeyPair returns a version's chain and key, which a server of the certificate fetches as a secret. Version "" is the
// newest.
func (v *Vault) KeyPair(name, id string) (tls.Certificate, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var newest *version
	for _, c := range v.certificate(name).versions {
		if c.id == id || id == "" && (newest == nil || c.serial > newest.serial) {
			newest = c
		}
	}
	if newest == nil {
		return tls.Certificate{}, fmt.Errorf("certificate %s has no version %q", name, id)
	}
	return tls.Certificate{Certificate: newest.chain, PrivateKey: newest.key}, nil
}

// Keys returns the private keys that the vault has made, merged or not: no other component may ever see one.
func (v *Vault) Keys() []crypto.Signer {
	v.mu.Lock()
	defer v.mu.Unlock()
	var keys []crypto.Signer
	for _, c := range v.certificates {
		if c.pending != nil {
			keys = append(keys, c.pending.key)
		}
		for _, one := range c.versions {
			keys = append(keys, one.key)
		}
	}
	return keys
}

// Pending reports whether a request is pending.
func (v *Vault) Pending(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.certificate(name).pending != nil
}

// Count returns the number of requests with a token and this HTTP method.
func (v *Vault) Count(method string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.counts[method]
}

// Fault breaks one request.
type Fault struct {
	// Method is the HTTP method of the request, Path the end of its path; the fault breaks the next such request with a
	// token.
	Method, Path string
	// Applied reports whether the request takes effect before it is broken.
	Applied bool
	// Status is the status of the answer; 0 cuts the connection without an answer.
	Status int
	// Code, InnerCode and Message fill the error document of the answer.
	Code, InnerCode, Message string
}

// Inject breaks the next requests, one for each fault.
func (v *Vault) Inject(faults ...Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults = append(v.faults, faults...)
}

// next counts a request and returns its fault.
func (v *Vault) next(r *http.Request) *Fault {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts[r.Method]++
	at := slices.IndexFunc(v.faults, func(f Fault) bool { return f.Method == r.Method && strings.HasSuffix(r.URL.Path, f.Path) })
	if at < 0 {
		return nil
	}
	fault := v.faults[at]
	v.faults = slices.Delete(v.faults, at, at+1)
	return &fault
}

// certificate finds a certificate, or makes an empty one.
func (v *Vault) certificate(name string) *certificate {
	name = strings.ToLower(name)
	if v.certificates[name] == nil {
		v.certificates[name] = &certificate{}
	}
	return v.certificates[name]
}

// now returns the time of the vault's clock.
func (v *Vault) now() time.Time {
	if v.Now != nil {
		return v.Now()
	}
	return time.Now()
}
