package block

import (
	"context"
	"testing"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/orchestratortest"
)

type Order struct{ ID string }

var charge = orchestrator.NewActivity("charge", func(context.Context, Order) (string, error) { return "", nil })

var order = orchestrator.NewOrchestrator("order", func(ctx *orchestrator.Context, o Order) (string, error) {
	return charge.Call(ctx, o).Await()
})

// The block stands here.
