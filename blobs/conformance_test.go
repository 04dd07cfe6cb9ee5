package blobs_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/blobs/blobstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	blobstest.Run(t, func(*testing.T) blobs.Store { return blobs.NewMemory() })
}
