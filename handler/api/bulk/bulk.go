package bulk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// sliceSize is how much a slice has at most: some hundred transactions, a few seconds.
	sliceSize = 100
	// sliceSeconds is how long a slice takes at most that has a rate.
	sliceSeconds = 10
	// slicesPerRun is after how many slices the orchestration continues as new.
	slicesPerRun = 50
	// sliceTimeout bounds one slice.
	sliceTimeout = 2 * time.Minute
)

// ErrRefused: what works on a slice will never take it. It fails the operation at once.
var ErrRefused = errors.New("refused")

// Kind is one kind of operation: its name, and what it does with a slice.
type Kind struct {
	// Name is its orchestrator's, and how the ids of its operations begin.
	Name string
	// Work works on one slice. What it does has to bear being done again.
	Work func(ctx context.Context, s Slice) (Result, error)
	// Returned counts those of the rows whose work has come to nothing since; nil for a kind without canaries.
	Returned func(ctx context.Context, rows []Row) (int, error)
}

// Slice is a part of what an operation works on.
type Slice struct {
	Request
	// Limit is how much it has at most, Continuation where it begins: Result.Continuation of the slice before.
	Limit        int
	Continuation string
}

// Result is what a slice has brought.
type Result struct {
	// Done counts what was changed, PassedOver what could not be: in the wrong state, ended meanwhile, gone.
	Done       int `json:"done"`
	PassedOver int `json:"passedOver"`
	// Rows are what was changed, where the request has a canary.
	Rows []Row `json:"rows,omitempty"`
	// Continuation is where the next slice begins, "" behind the last.
	Continuation string `json:"continuation,omitempty"`
}

// Row names a row that an operation has changed.
type Row struct {
	Engine string `json:"engine"`
	RowKey string `json:"rowKey"`
}

// Orchestrators are the durable functions of the kinds, and Activities what they call: both go into orchestrator.Config.
func Orchestrators(kinds ...Kind) []orchestrator.AnyOrchestrator {
	var all []orchestrator.AnyOrchestrator
	for _, k := range kinds {
		slice, canary := k.activity(), k.canary()
		all = append(all, orchestrator.NewOrchestrator(k.Name, func(ctx *orchestrator.Context, s state) (Progress, error) {
			for range slicesPerRun {
				if err := ctx.SetStatus(s.shown()); err != nil {
					return s.Progress, err
				}
				done, err := slice.Call(ctx, s).Await()
				if err != nil {
					return s.Progress, err
				}
				s.add(done)
				if s.Canary > 0 && s.Slices == 1 {
					if err := ctx.SetStatus(s.shown()); err != nil { // who looks while it waits sees those that went first
						return s.Progress, err
					}
					if err := ctx.Sleep(s.canaryWait()); err != nil {
						return s.Progress, err
					}
					if s.Returned, err = canary.Call(ctx, done.Rows).Await(); err != nil {
						return s.Progress, err
					}
				}
				if s.Continuation == "" || s.Returned > 0 {
					return s.Progress, errors.Join(ctx.SetStatus(s.shown()), s.verdict())
				}
			}
			return s.Progress, orchestrator.ContinueAsNew(s)
		}))
	}
	return all
}

// Activities are what the Orchestrators call.
func Activities(kinds ...Kind) []orchestrator.AnyActivity {
	var all []orchestrator.AnyActivity
	for _, k := range kinds {
		all = append(all, k.activity())
		if k.Returned != nil {
			all = append(all, k.canary())
		}
	}
	return all
}

func (k Kind) activity() *orchestrator.Activity[state, Result] {
	return orchestrator.NewActivity(k.Name+"-slice", func(ctx context.Context, s state) (Result, error) {
		r, err := k.Work(ctx, s.slice())
		if errors.Is(err, ErrRefused) {
			err = orchestrator.Permanent(err)
		}
		if err != nil {
			return Result{}, fmt.Errorf("slice %d: %w", s.Slices+1, err)
		}
		if s.Canary == 0 || s.Slices > 0 {
			r.Rows = nil
		}
		return r, nil
	}, persistently()...)
}

func (k Kind) canary() *orchestrator.Activity[[]Row, int] {
	return orchestrator.NewActivity(k.Name+"-canary", func(ctx context.Context, rows []Row) (int, error) {
		return k.Returned(ctx, rows)
	}, persistently()...)
}

func persistently() []orchestrator.CallOption {
	return []orchestrator.CallOption{orchestrator.WithTimeout(sliceTimeout), orchestrator.WithRetry(orchestrator.Retry{
		MaxAttempts: 8, FirstInterval: 2 * time.Second, MaxInterval: time.Minute, Jitter: 0.2,
	})}
}
