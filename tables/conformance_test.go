package tables_test

import (
	"testing"

	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/tablestest"
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	tablestest.Run(t, func(*testing.T) tables.Store { return tables.NewMemory() })
}

func TestAzure(t *testing.T) {
	t.Parallel()
	store, err := tables.NewAzure(storage.Account(t))
	if err != nil {
		t.Fatal(err)
	}
	tablestest.Run(t, func(*testing.T) tables.Store { return store })
}
