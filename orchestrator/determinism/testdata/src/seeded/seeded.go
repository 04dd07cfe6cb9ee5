// Package seeded has one mistake, for the test of the command.
package seeded

import (
	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/orchestrator"
)

func token() uuid.UUID { return uuid.New() } // want token:`calls uuid\.New`

// Run takes its identifier from the wrong place.
func Run(ctx *orchestrator.Context, in string) (string, error) { // want Run:`calls seeded\.token`
	return in + token().String(), nil // want `calls seeded\.token, which calls uuid\.New: `
}
