package secrets_test

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
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

// newTables returns a table store with the table of the development twin.
func newTables(t *testing.T) tables.Store {
	t.Helper()
	store := tables.NewMemory()
	testenv.OK(t, store.CreateTable(t.Context(), secrets.DevelopmentTable))
	return store
}

// openVault returns a client of a vault.
func openVault(t *testing.T, vault *secretstest.Vault) *secrets.KeyVault {
	t.Helper()
	return testenv.Must(secrets.NewKeyVault(vault.URL(), vault.Credential(), vault.Options()))(t)
}

// Both stores show the time of the last change; disabling a disabled version is no change in the table.
func TestUpdatedShowsTheLastChange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	development, vault := secrets.NewDevelopment(newTables(t)), secretstest.NewVault(t)
	development.Now, vault.Now = clock, clock
	for name, store := range map[string]secretstest.Store{"development": development, "key vault": openVault(t, vault)} {
		v, err := store.Add(t.Context(), "key", []byte("v"), nil)
		if err != nil || !v.Updated.Equal(now) {
			t.Errorf("%s: Add = %+v, %v", name, v, err)
		}
		now = now.Add(time.Hour)
		if err := store.Disable(t.Context(), "key", v.Version); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, err := store.Versions(t.Context(), "key")
		if err != nil || len(got) != 1 || !got[0].Updated.Equal(now) || !got[0].Created.Equal(v.Created) {
			t.Errorf("%s: Versions = %+v, %v; it was changed at %v", name, got, err, now)
		}
	}
	now = now.Add(time.Hour)
	testenv.OK(t, development.Disable(t.Context(), "key", list(t, development)[0].Version))
	if got := list(t, development); got[0].Updated.Equal(now) {
		t.Errorf("%+v counts as changed when it was disabled again", got)
	}
}

func list(t *testing.T, store secretstest.Store) []secrets.Version {
	t.Helper()
	return testenv.Must(store.Versions(t.Context(), "key"))(t)
}
