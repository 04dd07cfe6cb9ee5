package certificates_test

import (
	"testing"

	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/certificates/certificatestest"
	"github.com/vibedata/roundhouse/tables"
)

func TestDevelopment(t *testing.T) {
	t.Parallel()
	certificatestest.Run(t, func(t *testing.T) certificates.Store {
		store := tables.NewMemory()
		if err := store.CreateTable(t.Context(), certificates.DevelopmentTable); err != nil {
			t.Fatal(err)
		}
		return certificates.NewDevelopment(store)
	})
}

func TestKeyVault(t *testing.T) {
	t.Parallel()
	certificatestest.Run(t, func(t *testing.T) certificates.Store { return openVault(t, certificatestest.NewVault(t)) })
}

func openVault(t *testing.T, vault *certificatestest.Vault) *certificates.KeyVault {
	t.Helper()
	store, err := certificates.NewKeyVault(vault.URL(), vault.Credential(), vault.Options())
	if err != nil {
		t.Fatal(err)
	}
	return store
}
