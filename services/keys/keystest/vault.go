package keystest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
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
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
)

const (
	tenant   = "3f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11"
	resource = "https://vault.azure.net"
	token    = "a-token-for-tests"
	// bits is the size of the keys, the smallest that Key Vault makes.
	bits = 2048
)

// Vault is a Key Vault on a loopback HTTPS server with the required operations on keys: the challenge for a token, RSA
// keys with versions, the newest of a key, wrapKey and unwrapKey by RSA-OAEP-256, disabled versions, and refusals on
// demand.
type Vault struct {
	server *httptest.Server

	mu       sync.Mutex
	keys     map[string][]*version // by name, the newest last
	counts   map[string]int        // requests by operation: get, wrapkey, unwrapkey
	refusals []Refusal
}

type version struct {
	name     string
	key      *rsa.PrivateKey
	disabled bool
}

// Refusal breaks one request.
type Refusal struct {
	// Status is the status of the answer; 0 cuts the connection without an answer.
	Status int
	// Code, InnerCode and Message fill the error document.
	Code, InnerCode, Message string
}

// NewVault starts a vault that ends with the test.
func NewVault(t testing.TB) *Vault {
	t.Helper()
	v := &Vault{keys: map[string][]*version{}, counts: map[string]int{}}
	v.server = httptest.NewTLSServer(v)
	t.Cleanup(v.server.Close)
	return v
}

// URL returns the vault's address.
func (v *Vault) URL() string { return v.server.URL }

// Options returns those of a client of this vault, which trusts its certificate and retries without delaying a test.
func (v *Vault) Options() *azkeys.ClientOptions {
	return &azkeys.ClientOptions{
		ClientOptions: azcore.ClientOptions{
			Transport: v.server.Client(),
			Retry:     policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: 2 * time.Millisecond},
		},
		// The vault is a loopback address, not a subdomain of the resource that the challenge names.
		DisableChallengeResourceVerification: true,
	}
}

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

// Rotate makes a version of a key, and a missing key, and returns the version's name.
func (v *Vault) Rotate(name string) (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return "", fmt.Errorf("make a version of %s: %w", name, err)
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	v.mu.Lock()
	defer v.mu.Unlock()
	made := &version{name: hex.EncodeToString(id[:]), key: key}
	v.keys[name] = append(v.keys[name], made)
	return made.name, nil
}

// Disable makes a version of a key unusable.
func (v *Vault) Disable(name, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if found := v.find(name, version); found != nil {
		found.disabled = true
	}
}

// Delete deletes a key with all its versions.
func (v *Vault) Delete(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.keys, name)
}

// Refuse breaks the next requests, one for each refusal.
func (v *Vault) Refuse(refusals ...Refusal) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refusals = append(v.refusals, refusals...)
}

// Count returns the number of requests with a token for an operation: get, wrapkey or unwrapkey.
func (v *Vault) Count(operation string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.counts[operation]
}

// ServeHTTP implements http.Handler, for tests that serve this vault and another one on one server.
func (v *Vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer authorization="https://login.microsoftonline.com/%s", resource="%s"`, tenant, resource))
		refuse(w, Refusal{Status: http.StatusUnauthorized, Code: "Unauthorized", Message: "Request is missing a Bearer or PoP token."})
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.URL.Query().Get("api-version") == "" || len(parts) < 2 || len(parts) > 4 || parts[0] != "keys" {
		refuse(w, Refusal{Status: http.StatusBadRequest, Code: "BadParameter", Message: "Not a request of the keys API."})
		return
	}
	parts = append(parts, "", "")
	operation := parts[3]
	if operation == "" {
		operation = "get"
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts[operation]++
	if len(v.refusals) > 0 {
		spoilt := v.refusals[0]
		v.refusals = v.refusals[1:]
		if spoilt.Status == 0 {
			panic(http.ErrAbortHandler) // net/http's way to drop a connection without an answer
		}
		refuse(w, spoilt)
		return
	}
	v.serve(w, r, parts[1], parts[2], operation)
}

// serve carries out an operation with a version of a key, "" for the newest.
func (v *Vault) serve(w http.ResponseWriter, r *http.Request, name, wanted, operation string) {
	found := v.find(name, wanted)
	if found == nil {
		refuse(w, Refusal{Status: http.StatusNotFound, Code: "KeyNotFound", Message: "A key with (name/id) " + name + "/" + wanted + " was not found in this key vault."})
		return
	}
	kid := fmt.Sprintf("https://%s/keys/%s/%s", r.Host, name, found.name)
	if operation == "get" && r.Method == http.MethodGet {
		answer(w, map[string]any{"key": map[string]any{"kid": kid, "kty": "RSA", "key_ops": []string{"wrapKey", "unwrapKey"}}, "attributes": map[string]any{"enabled": !found.disabled}})
		return
	}
	if found.disabled {
		refuse(w, Refusal{Status: http.StatusForbidden, Code: "Forbidden", InnerCode: "KeyDisabled", Message: "Operation " + operation + " is not allowed on a disabled key."})
		return
	}
	var body struct{ Alg, Value string }
	err := json.NewDecoder(r.Body).Decode(&body)
	value, decoded := base64.RawURLEncoding.DecodeString(body.Value)
	if err = errors.Join(err, decoded); err == nil && body.Alg != "RSA-OAEP-256" {
		err = errors.New("the algorithm is " + body.Alg)
	}
	var result []byte
	switch {
	case err != nil:
	case operation == "wrapkey":
		result, err = rsa.EncryptOAEP(sha256.New(), rand.Reader, &found.key.PublicKey, value, nil)
	case operation == "unwrapkey":
		result, err = rsa.DecryptOAEP(sha256.New(), nil, found.key, value, nil)
	default:
		err = errors.New("not an operation that this vault knows")
	}
	if err != nil {
		refuse(w, Refusal{Status: http.StatusBadRequest, Code: "BadParameter", Message: err.Error()})
		return
	}
	answer(w, map[string]string{"kid": kid, "value": base64.RawURLEncoding.EncodeToString(result)})
}

func (v *Vault) find(name, wanted string) *version {
	all := v.keys[name]
	for _, one := range all {
		if one.name == wanted {
			return one
		}
	}
	if wanted != "" || len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// answer writes a document.
func answer(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	// Ignore a client that disconnected.
	_ = json.NewEncoder(w).Encode(document)
}

// refuse writes an error document.
func refuse(w http.ResponseWriter, r Refusal) {
	text := map[string]any{"code": r.Code, "message": r.Message}
	if r.InnerCode != "" {
		text["innererror"] = map[string]string{"code": r.InnerCode}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(r.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": text})
}
