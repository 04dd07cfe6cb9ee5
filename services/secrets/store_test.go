package secrets_test

import (
	"testing"

	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/services/secrets/secretstest"
	"github.com/vibedata/roundhouse/tables"
)

func TestDevelopment(t *testing.T) {
	t.Parallel()
	secretstest.Run(t, func(t *testing.T) secretstest.Store {
		return secrets.NewDevelopment(newTables(t))
	})
}

func TestKeyVault(t *testing.T) {
	t.Parallel()
	secretstest.Run(t, func(t *testing.T) secretstest.Store {
		return openVault(t, secretstest.NewVault(t))
	})
}

// newTables makes a table store with the table of the development twin.
func newTables(t *testing.T) tables.Store {
	t.Helper()
	store := tables.NewMemory()
	if err := store.CreateTable(t.Context(), secrets.DevelopmentTable); err != nil {
		t.Fatal(err)
	}
	return store
}

// openVault connects to a vault.
func openVault(t *testing.T, vault *secretstest.Vault) *secrets.KeyVault {
	t.Helper()
	store, err := secrets.NewKeyVault(vault.URL(), vault.Credential(), vault.Options())
	if err != nil {
		t.Fatal(err)
	}
	return store
}
