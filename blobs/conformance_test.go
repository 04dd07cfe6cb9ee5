package blobs_test

import (
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/blobs/blobstest"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	blobstest.Run(t, func(*testing.T) blobs.Store { return blobs.NewMemory() })
}

func TestAzure(t *testing.T) {
	t.Parallel()
	store, err := blobs.NewAzure(storage.Account(t))
	if err != nil {
		t.Fatal(err)
	}
	blobstest.Run(t, func(*testing.T) blobs.Store { return store })
}
