// Package unused needs an import no longer once it is fixed.
package unused

import (
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

var _ = orchestrator.NewOrchestrator("unused", func(ctx *orchestrator.Context, in int) (int, error) {
	return in + time.Now().Year(), nil // want `calls time\.Now: `
})
