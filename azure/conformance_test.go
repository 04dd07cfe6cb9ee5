package azure_test

import (
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/blobs/blobstest"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/queues/queuestest"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/tablestest"
)

var emulator azuritetest.Shared

func TestMain(m *testing.M) { emulator.Main(m) }

// The adapters keep the promises of the stores in memory.
func TestConformance(t *testing.T) {
	t.Parallel()
	account := emulator.Account(t)
	t.Run("tables", func(t *testing.T) {
		t.Parallel()
		store := testenv.Must(azure.NewTables(account))(t)
		tablestest.Run(t, func(*testing.T) tables.Store { return store })
	})
	t.Run("queues", func(t *testing.T) {
		t.Parallel()
		store := testenv.Must(azure.NewQueues(account))(t)
		queuestest.Run(t, func(*testing.T) queues.Store { return store })
	})
	t.Run("blobs", func(t *testing.T) {
		t.Parallel()
		store := testenv.Must(azure.NewBlobs(account))(t)
		blobstest.Run(t, func(*testing.T) blobs.Store { return store })
	})
}
