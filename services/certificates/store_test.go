package certificates_test

import (
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/certificates/certificatestest"
	"github.com/vibedata/roundhouse/tables"
)

func TestDevelopment(t *testing.T) {
	t.Parallel()
	certificatestest.Run(t, func(t *testing.T) certificates.Store {
		store := tables.NewMemory()
		testenv.OK(t, store.CreateTable(t.Context(), certificates.DevelopmentTable))
		return certificates.NewDevelopment(store)
	})
}

func TestKeyVault(t *testing.T) {
	t.Parallel()
	certificatestest.Run(t, func(t *testing.T) certificates.Store { return openVault(t, certificatestest.NewVault(t)) })
}

func openVault(t *testing.T, vault *certificatestest.Vault) *certificates.KeyVault {
	t.Helper()
	return testenv.Must(certificates.NewKeyVault(vault.URL(), vault.Credential(), vault.Options()))(t)
}
