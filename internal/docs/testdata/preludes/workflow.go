package block

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

type OrderInput struct{ ID string }

type Steps interface {
	Reserve(context.Context, OrderInput) (string, error)
	Release(context.Context, OrderInput) (string, error)
	Ship(context.Context, OrderInput) (string, error)
}

// The block stands here.
