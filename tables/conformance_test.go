package tables_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/tablestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	tablestest.Run(t, func(*testing.T) tables.Store { return tables.NewMemory() })
}
