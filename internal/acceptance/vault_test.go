package acceptance

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/keyvaultfake"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/internal/tlstarget"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/services/secrets/secretstest"
	"github.com/vibedata/roundhouse/tables"
)

// kept is a store of secrets that the test can read.
type kept interface {
	secrets.Store
	secrets.Reader
}

// vault is a store of secrets with its access data.
type vault struct {
	kept
	// keyPair fetches a certificate with its key, as servers of it do.
	keyPair tlstarget.Fetch
	// env directs a handler to it; tokens and authority are its accepted tokens and the certificate authority of its
	// address, if any.
	env       []string
	tokens    map[string]string
	authority []byte
}

// developmentVault returns the vault of a developer's machine.
func developmentVault(t *testing.T, storage azure.Account) vault {
	t.Helper()
	store, err := azure.NewTables(storage)
	if err == nil {
		err = store.CreateTable(t.Context(), secrets.DevelopmentTable)
	}
	if err != nil {
		t.Fatal(err)
	}
	return vault{kept: secrets.NewDevelopment(store), keyPair: func(name, version string) (tls.Certificate, error) { return keyPair(t, store, name, version) }}
}

// keyPair reads a row of the development vault.
func keyPair(t *testing.T, store tables.Store, name, version string) (tls.Certificate, error) {
	row, err := store.Get(t.Context(), certificates.DevelopmentTable, tables.Key{Partition: tables.EscapeKey(strings.ToLower(name)), Row: version})
	if err != nil {
		return tls.Certificate{}, err
	}
	der, _ := row.Properties["Chain"].([]byte)
	chain, err := x509.ParseCertificates(der)
	if err != nil {
		return tls.Certificate{}, err
	}
	var pair tls.Certificate
	for _, c := range chain {
		pair.Certificate = append(pair.Certificate, c.Raw)
	}
	der, _ = row.Properties["Key"].([]byte)
	pair.PrivateKey, err = x509.ParsePKCS8PrivateKey(der)
	return pair, err
}

// TestKeyVault lets the engines that make secrets keep them in a Key Vault; only the proxy on the way differs from
// production. Storage has no vault here: the search leaves nothing out.
func TestKeyVault(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	s := beginSearch(t, 0)
	far := keyvaultfake.Start(t)
	store := testenv.Must(secrets.NewKeyVault(far.Secrets.URL(), far.Secrets.Credential(), far.Secrets.Options()))(t)
	w := newWorld(t, s, vault{kept: store, keyPair: far.Certificates.KeyPair, tokens: far.Secrets.Tokens(), authority: far.AuthorityPEM(),
		env: append(far.Environment(), "ROUNDHOUSE_KEY_VAULT_URL="+keyvaultfake.URL)})
	t.Run("hmac", w.testRotation)
	t.Run("spn", w.testSPN)
	t.Run("tls", w.testTLS)
	t.Run("the vault refuses", func(t *testing.T) { w.testVaultRefuses(t, far.Secrets) })
	w.collect(t, s, inVault(t, far)...)
}

// testVaultRefuses: the handler lacks its role, until the attempts are used up.
func (w *world) testVaultRefuses(t *testing.T, far *secretstest.Vault) {
	id := uuid.NewString()
	var refusals []secretstest.Fault
	for range 100 { // more than the number of requests
		refusals = append(refusals, secretstest.Fault{Method: http.MethodGet, Status: http.StatusForbidden, Code: "Forbidden", InnerCode: "ForbiddenByRbac"})
	}
	far.Inject(refusals...)
	body := rotation(id, "instance-refused")
	w.send(t, hmac.Queue, body)
	w.buried(t, grave{entrance: at(hmac.Engine, hmac.Queue), correlationID: id, body: body, reason: "Key Vault Secrets Officer", count: 5})
	if versions, err := w.outside.vault.Versions(t.Context(), secrets.Name(hmac.Engine, "instance-refused")); !errors.Is(err, secrets.ErrForbidden) {
		t.Errorf("the faults are used up: %v %v", versions, err)
	}
}

// inVault returns the values in a Key Vault, and its private keys.
func inVault(t *testing.T, far *keyvaultfake.Server) (values [][]byte) {
	t.Helper()
	for _, text := range far.Secrets.Values() {
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(value) < 16 {
			t.Fatalf("a secret of %d bytes, %v", len(value), err)
		}
		values = append(values, parts(t, value)...)
	}
	keys := far.Certificates.Keys()
	for _, key := range keys {
		der := testenv.Must(x509.MarshalPKCS8PrivateKey(key))(t)
		values = append(values, parts(t, der)...)
	}
	if secrets := len(far.Secrets.Values()); secrets < 5 || len(keys) < 1 {
		t.Errorf("%d secrets and %d private keys in the vault", secrets, len(keys))
	}
	return values
}
