package certificates_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/certificates/certificatestest"
	"github.com/vibedata/roundhouse/services/secrets"
)

const name = "tls-example"

var domains = []string{"www.example.com"}

func TestKeyVaultErrors(t *testing.T) {
	t.Parallel()
	cases := []struct {
		what  string
		fault certificatestest.Fault
		want  error
		says  string
	}{
		{"no role", certificatestest.Fault{Status: 403, Code: "Forbidden", InnerCode: "ForbiddenByRbac"}, secrets.ErrForbidden, "Certificates Officer"},
		{"firewall", certificatestest.Fault{Status: 403, Code: "Forbidden", InnerCode: "ForbiddenByFirewall"}, secrets.ErrForbidden, "firewall"},
		{"refused", certificatestest.Fault{Status: 400, Code: "BadParameter", Message: strings.Repeat("m", 400)}, secrets.ErrInvalid, "mmm..."},
		{"not found", certificatestest.Fault{Status: 404, Code: "CertificateNotFound"}, secrets.ErrNotFound, "CertificateNotFound"},
		{"conflict", certificatestest.Fault{Status: 409, Code: "Conflict"}, secrets.ErrThrottled, ""},
		{"strange", certificatestest.Fault{Status: 418}, secrets.ErrOutcomeUnknown, "418"},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			vault := certificatestest.NewVault(t)
			store := openVault(t, vault)
			c.fault.Method = http.MethodPatch
			vault.Inject(c.fault)
			err := store.Disable(t.Context(), name, strings.Repeat("0a", 16))
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), name) || len(err.Error()) > 600 {
				t.Errorf("Disable = %v", err)
			}
		})
	}
}

// A request that the SDK repeats after a lost answer counts once.
func TestKeyVaultLostAnswers(t *testing.T) {
	t.Parallel()
	vault, ca := certificatestest.NewVault(t), certificatestest.NewAuthority(t)
	store := openVault(t, vault)
	vault.Inject(certificatestest.Fault{Method: http.MethodPost, Path: "/create", Applied: true}, certificatestest.Fault{Method: http.MethodGet, Path: "/pending"})
	csr := testenv.Must(store.Request(t.Context(), name, domains, certificates.DefaultKeyType))(t)
	vault.Inject(certificatestest.Fault{Method: http.MethodPost, Path: "/merge", Applied: true})
	chain := ca.Sign(t, csr, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if _, err := store.Merge(t.Context(), name, chain, map[string]string{"job": "1"}); !errors.Is(err, certificates.ErrNoRequest) {
		t.Errorf("Merge whose answer got lost = %v, want ErrNoRequest: look again", err)
	}
	versions, err := store.Versions(t.Context(), name)
	if err != nil || len(versions) != 1 || versions[0].Tags["job"] != "1" {
		t.Errorf("versions %v, %v", versions, err)
	}
}

func TestKeyVaultSoftDeleted(t *testing.T) {
	t.Parallel()
	vault := certificatestest.NewVault(t)
	vault.SoftDelete(name)
	if _, err := openVault(t, vault).Request(t.Context(), name, domains, certificates.DefaultKeyType); !errors.Is(err, secrets.ErrDeleted) || !strings.Contains(err.Error(), "recover") {
		t.Errorf("Request = %v", err)
	}
}

func TestNewKeyVault(t *testing.T) {
	t.Parallel()
	vault := certificatestest.NewVault(t)
	for _, url := range []string{"", "http://v.vault.azure.net", "https://", "https://user:pass@v.vault.azure.net", "https://v.vault.azure.net/secrets", "https://v?x=1"} {
		if _, err := certificates.NewKeyVault(url, vault.Credential(), nil); !errors.Is(err, secrets.ErrInvalid) || strings.Contains(err.Error(), "pass") {
			t.Errorf("NewKeyVault(%q) = %v", url, err)
		}
	}
	if _, err := certificates.NewKeyVault(vault.URL(), nil, nil); err == nil {
		t.Error("a vault without a credential was opened")
	}
}
