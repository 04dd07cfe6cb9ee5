package bulk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
)

const (
	// Name is the orchestrator's.
	Name = "outbox-bulk"
	// IDPrefix is how the ids of its orchestrations begin.
	IDPrefix = Name + "-"

	sliceActivity = "outbox-bulk-slice"
	// sliceSize is how many messages a slice has: some hundred transactions, a few seconds.
	sliceSize = 100
	// slicesPerRun is after how many slices the orchestration continues as new.
	slicesPerRun = 50
	// sliceTimeout bounds one slice.
	sliceTimeout = 2 * time.Minute
)

// Actor works on one slice; *outbox.Admin is one.
type Actor interface {
	Bulk(ctx context.Context, action outbox.Action, f outbox.Filter, by string) (outbox.Progress, error)
}

// Orchestrator is the durable function, and Activities what it calls: both go into orchestrator.Config.
func Orchestrator() orchestrator.AnyOrchestrator {
	slice := activity(nil)
	return orchestrator.NewOrchestrator(Name, func(ctx *orchestrator.Context, s state) (Progress, error) {
		for range slicesPerRun {
			if err := ctx.SetStatus(s.shown()); err != nil {
				return s.Progress, err
			}
			done, err := slice.Call(ctx, s).Await()
			if err != nil {
				return s.Progress, err
			}
			s.Slices++
			s.Done += done.Done
			s.PassedOver += done.PassedOver
			s.Continuation = done.Continuation
			if s.Continuation == "" {
				return s.Progress, ctx.SetStatus(s.shown())
			}
		}
		return s.Progress, orchestrator.ContinueAsNew(s)
	})
}

// Activities are what the Orchestrator calls.
func Activities(a Actor) []orchestrator.AnyActivity {
	return []orchestrator.AnyActivity{activity(a)}
}

func activity(a Actor) *orchestrator.Activity[state, sliceResult] {
	return orchestrator.NewActivity(sliceActivity, func(ctx context.Context, s state) (sliceResult, error) {
		p, err := a.Bulk(ctx, s.Request.Action, s.filter(), s.Request.By)
		if errors.Is(err, outbox.ErrInvalid) || errors.Is(err, outbox.ErrToken) {
			err = orchestrator.Permanent(err)
		}
		if err != nil {
			return sliceResult{}, fmt.Errorf("slice %d: %w", s.Slices+1, err)
		}
		return sliceResult{p.Done, p.PassedOver, p.Continuation}, nil
	}, orchestrator.WithTimeout(sliceTimeout), orchestrator.WithRetry(orchestrator.Retry{
		MaxAttempts: 8, FirstInterval: 2 * time.Second, MaxInterval: time.Minute, Jitter: 0.2,
	}))
}
