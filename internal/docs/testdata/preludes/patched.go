package block

import "github.com/vibedata/roundhouse/orchestrator"

type Order struct{ ID string }

func run(ctx *orchestrator.Context, order Order, check, charge *orchestrator.Activity[Order, string]) (string, error) {
	// The block stands here.
}
