package block

import (
	"errors"

	"github.com/vibedata/roundhouse/orchestrator"
)

func run(ctx *orchestrator.Context, id string, work, release *orchestrator.Activity[string, string]) (err error) {
	// The block stands here.
}
