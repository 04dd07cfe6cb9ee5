package forms

import (
	"testing"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

func TestSteered(t *testing.T) {
	gate := make(chan time.Time, 1)
	_ = orchestrator.NewOrchestrator("steered", func(ctx *orchestrator.Context, in int) (time.Time, error) {
		gate <- time.Now()
		return <-gate, nil
	})
}
