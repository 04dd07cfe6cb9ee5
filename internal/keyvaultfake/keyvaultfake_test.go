package keyvaultfake_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azcertificates"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/keyvaultfake"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/secrets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client returns a client that uses the proxy.
func client(t *testing.T, s *keyvaultfake.Server) *http.Client {
	t.Helper()
	proxy := testenv.Must(url.Parse(s.Proxy()))(t)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.AuthorityPEM()) {
		t.Fatal("the authority is no certificate")
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Clients that check the name in the challenge find secrets and certificates at one address.
func TestVault(t *testing.T) {
	t.Parallel()
	s := keyvaultfake.Start(t)
	options := azcore.ClientOptions{Transport: client(t, s)}
	values, err := secrets.NewKeyVault(keyvaultfake.URL, s.Secrets.Credential(), &azsecrets.ClientOptions{ClientOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	v := testenv.Must(values.Add(t.Context(), "a", []byte("the value"), nil))(t)
	if value, err := values.Value(t.Context(), "a", v.Version); err != nil || string(value) != "the value" || len(s.Secrets.Values()) != 1 {
		t.Errorf("the value is %q, %v; the vault holds %d", value, err, len(s.Secrets.Values()))
	}
	issued, err := certificates.NewKeyVault(keyvaultfake.URL, s.Certificates.Credential(), &azcertificates.ClientOptions{ClientOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	if versions, err := issued.Versions(t.Context(), "a"); err != nil || len(versions) != 0 {
		t.Errorf("certificates: %v, %v", versions, err)
	}
}

func TestOtherAddresses(t *testing.T) {
	t.Parallel()
	s := keyvaultfake.Start(t)
	if _, err := client(t, s).Get("https://another.vault.azure.net/"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("another address: %v", err)
	}
}
