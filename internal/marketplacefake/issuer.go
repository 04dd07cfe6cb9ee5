package marketplacefake

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Issuer fakes the token service of Microsoft Entra: it signs tokens and publishes its keys on a loopback server.
type Issuer struct {
	// Tenant is the tenant of its tokens.
	Tenant string

	server *httptest.Server
	mu     sync.Mutex
	keys   []*rsa.PrivateKey // the last one signs
	down   bool
	asked  int
}

// NewIssuer starts an issuer that ends with the test.
func NewIssuer(t testing.TB, tenant string) *Issuer {
	t.Helper()
	return newIssuer(t, tenant, httptest.NewServer)
}

// NewTLSIssuer is NewIssuer over HTTPS.
func NewTLSIssuer(t testing.TB, tenant string) *Issuer {
	t.Helper()
	return newIssuer(t, tenant, httptest.NewTLSServer)
}

func newIssuer(t testing.TB, tenant string, listen func(http.Handler) *httptest.Server) *Issuer {
	t.Helper()
	i := &Issuer{Tenant: tenant}
	i.Rotate(t)
	i.server = listen(i)
	t.Cleanup(i.server.Close)
	return i
}

// Authority returns the address that replaces https://login.microsoftonline.com.
func (i *Issuer) Authority() string { return i.server.URL }

// Rotate makes a new signing key; the old ones stay published.
func (i *Issuer) Rotate(t testing.TB) {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	key, err := signingKey(len(i.keys))
	if err != nil {
		t.Fatal(err)
	}
	i.keys = append(i.keys, key)
}

// made are the keys that the issuers of this process share: generating one takes a tenth of a second.
var made struct {
	mu   sync.Mutex
	keys []*rsa.PrivateKey
}

// signingKey returns the n-th key of every issuer.
func signingKey(n int) (*rsa.PrivateKey, error) {
	made.mu.Lock()
	defer made.mu.Unlock()
	for len(made.keys) <= n {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, err
		}
		made.keys = append(made.keys, key)
	}
	return made.keys[n], nil
}

// Down sets whether the key set answers with 503.
func (i *Issuer) Down(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Asked returns how often the key set was read.
func (i *Issuer) Asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// Claims returns those of a valid token of version 1, for an audience and a caller; change them to make it invalid.
func (i *Issuer) Claims(audience, appID string) map[string]any {
	now := time.Now()
	return map[string]any{"iss": "https://sts.windows.net/" + i.Tenant + "/", "aud": audience, "tid": i.Tenant, "appid": appID, "ver": "1.0",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix()}
}

// Token signs claims with the issuer's last key.
func (i *Issuer) Token(t testing.TB, claims map[string]any) string {
	t.Helper()
	i.mu.Lock()
	key, kid := i.keys[len(i.keys)-1], fmt.Sprintf("key-%d", len(i.keys))
	i.mu.Unlock()
	part := func(v any) string {
		document, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(document)
	}
	text := part(map[string]string{"alg": "RS256", "typ": "JWT", "kid": kid}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// ServeHTTP answers the key set of the tenant.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !strings.EqualFold(r.URL.Path, "/"+i.Tenant+"/discovery/v2.0/keys") {
		http.NotFound(w, r)
		return
	}
	i.asked++
	if i.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	var keys []map[string]string
	for n, key := range i.keys {
		keys = append(keys, map[string]string{"kty": "RSA", "use": "sig", "kid": fmt.Sprintf("key-%d", n+1),
			"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())})
	}
	answer(w, http.StatusOK, map[string]any{"keys": keys})
}
