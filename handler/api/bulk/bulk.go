package bulk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// sliceSize bounds a slice: some hundred transactions, a few seconds.
	sliceSize = 100
	// sliceSeconds bounds the duration of a slice with a rate.
	sliceSeconds = 10
	// slicesPerRun is the number of slices after which the orchestration continues as new.
	slicesPerRun = 50
	// sliceTimeout bounds one slice.
	sliceTimeout = 2 * time.Minute
)

// ErrRefused: the worker of a slice will never accept it. It fails the operation immediately.
var ErrRefused = errors.New("refused")

// Kind is one kind of operation: its name, and the work on a slice.
type Kind struct {
	// Name is the name of its orchestrator, and the prefix of the ids of its operations.
	Name string
	// Work works on one slice. It must be repeatable.
	Work func(ctx context.Context, s Slice) (Result, error)
	// Returned counts the rows whose work has failed since; nil for a kind without canaries.
	Returned func(ctx context.Context, rows []Row) (int, error)
}

// Slice is a part of an operation's rows.
type Slice struct {
	Request
	// Limit bounds its rows, Continuation is its start: Result.Continuation of the previous slice.
	Limit        int
	Continuation string
}

// Result is the result of a slice.
type Result struct {
	// Done counts the changed rows, PassedOver the others: in the wrong state, ended meanwhile, deleted.
	Done       int `json:"done"`
	PassedOver int `json:"passedOver"`
	// Rows are the changed rows, if the request has a canary.
	Rows []Row `json:"rows,omitempty"`
	// Continuation is the start of the next slice, "" after the last.
	Continuation string `json:"continuation,omitempty"`
}

// Row names a row that an operation has changed.
type Row struct {
	Engine string `json:"engine"`
	RowKey string `json:"rowKey"`
}

// Orchestrators returns the orchestrators of the kinds, and Activities their activities: both go into
// orchestrator.Config.
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
					if err := ctx.SetStatus(s.shown()); err != nil { // the status shows the canary during the wait
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

// Activities returns the activities of the Orchestrators.
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
