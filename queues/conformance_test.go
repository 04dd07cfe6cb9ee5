package queues_test

import (
	"testing"

	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/queues/queuestest"
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	queuestest.Run(t, func(*testing.T) queues.Store { return queues.NewMemory() })
}

func TestAzure(t *testing.T) {
	t.Parallel()
	store, err := queues.NewAzure(storage.Account(t))
	if err != nil {
		t.Fatal(err)
	}
	queuestest.Run(t, func(*testing.T) queues.Store { return store })
}
