package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/internal/payload"
)

// Future is a result that may not be available yet. Only the orchestrator that made it may use it.
type Future[T any] struct {
	ctx  *Context
	task *task
}

// failedFuture returns a Future that failed before anything was recorded.
func failedFuture[T any](ctx *Context, err error) *Future[T] {
	return &Future[T]{ctx: ctx, task: failedTask(err)}
}

func failedTask(err error) *task { return &task{done: true, err: err} }

// ChildID returns the id of the future's sub-orchestration, for RaiseEvent, also before it has begun; "" for any other
// future.
func (f *Future[T]) ChildID() string { return f.task.child }

// Done reports whether Await would return immediately.
func (f *Future[T]) Done() bool {
	if f.task.done {
		f.ctx.execution.noteResultSeen(f.task)
	}
	return f.task.done
}

// Await waits for the result. The error is an *ActivityError for an activity that failed for good, an
// *OrchestrationError for a sub-orchestration, and ErrCanceled for an interrupted call.
func (f *Future[T]) Await() (T, error) {
	var out T
	f.task.awaited = true
	f.ctx.execution.wait(f.task)
	if f.task.err != nil {
		f.ctx.execution.noteResultSeen(f.task)
		return out, f.task.err
	}
	if err := json.Unmarshal(f.task.output, &out); err != nil {
		return out, Permanent(fmt.Errorf("result of %s: %w", f.task.name, payload.Explain(err)))
	}
	return out, nil
}

// All waits for all futures and returns their results in order. The error joins the errors of those that failed, also
// in order. The results of the others are returned with it.
func All[T any](futures ...*Future[T]) ([]T, error) {
	out := make([]T, len(futures))
	var errs []error
	for i, f := range futures {
		v, err := f.Await()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out[i] = v
	}
	return out, errors.Join(errs...)
}

// AllOrCancel is All for results that are useless without each other: when one fails, it cancels the others and
// returns that error.
func AllOrCancel[T any](ctx *Context, futures ...*Future[T]) ([]T, error) {
	out := make([]T, len(futures))
	left := make([]Waitable, len(futures))
	index := map[Waitable]int{}
	for i, f := range futures {
		left[i] = f
		index[f] = i
	}
	for len(left) > 0 {
		n := Any(ctx, left...)
		i := index[left[n]]
		left = slices.Delete(left, n, n+1)
		v, err := futures[i].Await()
		if err != nil {
			Cancel(ctx, left...)
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}
