package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Start starts an orchestration, and returns when the start is durable. id identifies it: a repeated start with the
// same input changes nothing, and one with another input is refused with ErrExists. The errors are those of
// orchestrator.Runtime.Start.
func Start[In, Out any](ctx context.Context, w *Worker, o *orchestrator.Orchestrator[In, Out], id string, in In) error {
	input, err := payload.Marshal(in)
	if err != nil {
		return fmt.Errorf("input of orchestration %s: %w", id, err)
	}
	_, err = w.runtime.Start(ctx, orchestrator.Start{ID: id, Orchestrator: o.Name(), Input: input})
	return err
}

// Result waits for the end of an orchestration and returns its result. For a failed one, the error wraps its
// *orchestrator.Failure, which errors.As finds. Other errors report that it was stopped, or that waiting failed and
// may be repeated.
func Result[In, Out any](ctx context.Context, w *Worker, o *orchestrator.Orchestrator[In, Out], id string) (out Out, err error) {
	end, err := w.runtime.Wait(ctx, id)
	switch {
	case err != nil:
		return out, err
	case end.Orchestrator != o.Name():
		return out, fmt.Errorf("orchestration %s is one of %s, not of %s: %w", id, end.Orchestrator, o.Name(), orchestrator.ErrConflict)
	case end.Failure != nil:
		return out, fmt.Errorf("orchestration %s is %s: %w", id, end.Status, end.Failure)
	case end.Status != orchestrator.Completed:
		return out, fmt.Errorf("orchestration %s is %s", id, end.Status)
	}
	if err := json.Unmarshal(end.Output, &out); err != nil {
		return out, fmt.Errorf("output of orchestration %s: %w", id, err)
	}
	return out, nil
}

// Execute is Start and Result: it runs an orchestration to its end. When ctx ends before, the orchestration
// continues; a second call with the same id waits for it.
func Execute[In, Out any](ctx context.Context, w *Worker, o *orchestrator.Orchestrator[In, Out], id string, in In) (out Out, err error) {
	if err := Start(ctx, w, o, id, in); err != nil {
		return out, err
	}
	return Result(ctx, w, o, id)
}
