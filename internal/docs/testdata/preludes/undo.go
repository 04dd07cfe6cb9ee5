package block

import (
	"errors"

	"github.com/vibedata/roundhouse/orchestrator"
)

type (
	Order  struct{ ID string }
	Result struct{}
)

func run(ctx *orchestrator.Context, order Order, reserve *orchestrator.Activity[Order, string], release, charge *orchestrator.Activity[string, string]) (Result, error) {
	// The block stands here.
	return Result{}, nil
}
