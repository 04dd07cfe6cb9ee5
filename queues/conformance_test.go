package queues_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/queues/queuestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	queuestest.Run(t, func(*testing.T) queues.Store { return queues.NewMemory() })
}
