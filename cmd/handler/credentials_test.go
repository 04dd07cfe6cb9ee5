package main

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// The expiry of the newest working password counts, and a missing one has none.
func TestPasswordExpiries(t *testing.T) {
	t.Parallel()
	store := tables.NewMemory()
	vault := secrets.NewDevelopment(store)
	list := passwordExpiries(vault, []string{"11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"})
	if _, err := list(t.Context()); err == nil {
		t.Error("a vault that is not there has no error")
	}
	testenv.OK(t, store.CreateTable(t.Context(), secrets.DevelopmentTable))
	ends := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	name := secrets.Name(spn.Engine, "11111111-1111-1111-1111-111111111111")
	check := func(want time.Time) {
		t.Helper()
		got, err := list(t.Context())
		if err != nil || len(got) != 2 || got[0].Name != name || !got[0].ExpiresAt.Equal(want) || !got[1].ExpiresAt.IsZero() {
			t.Errorf("%+v, %v; want %v", got, err, want)
		}
	}
	check(time.Time{})
	made, err := vault.Add(t.Context(), name, []byte("x"), map[string]string{spn.TagExpires: ends.Format(time.RFC3339)})
	if err != nil {
		t.Fatal(err)
	}
	check(ends)
	testenv.OK(t, vault.Disable(t.Context(), name, made.Version))
	check(time.Time{})
}
