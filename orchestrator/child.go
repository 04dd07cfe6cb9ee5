package orchestrator

import (
	"encoding/json"
	"fmt"
)

// Orchestrator is a durable function.
type Orchestrator[In, Out any] struct {
	name string
	fn   func(*Context, In) (Out, error)
}

// AnyOrchestrator is an Orchestrator of any type, for registration.
type AnyOrchestrator interface {
	// Name is the name that the rounds hold.
	Name() string
	run(ctx *Context, input json.RawMessage) (json.RawMessage, error)
}

// NewOrchestrator names fn. The name is kept in rounds. In and Out travel as JSON.
func NewOrchestrator[In, Out any](name string, fn func(*Context, In) (Out, error)) *Orchestrator[In, Out] {
	return &Orchestrator[In, Out]{name: name, fn: fn}
}

// Name is the name that the rounds hold.
func (o *Orchestrator[In, Out]) Name() string { return o.name }

func (o *Orchestrator[In, Out]) run(ctx *Context, input json.RawMessage) (json.RawMessage, error) {
	var in In
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, Permanent(fmt.Errorf("input of orchestrator %s: %w", o.name, err))
	}
	out, err := o.fn(ctx, in)
	if err != nil {
		return nil, err
	}
	output, err := marshal(out)
	if err != nil {
		return nil, Permanent(fmt.Errorf("output of orchestrator %s: %w", o.name, err))
	}
	return output, nil
}

// Call runs the orchestrator as a sub-orchestration, and returns at once: it has its own rounds and its own id, which
// begins with the caller's. It has the caller's correlation id. With WithRetry, a sub-orchestration that failed goes on
// as its next execution.
func (o *Orchestrator[In, Out]) Call(ctx *Context, in In, options ...CallOption) *Future[Out] {
	input, merged, err := prepareCall(in, callOptions{}, options)
	if err != nil {
		return failedFuture[Out](ctx, fmt.Errorf("call of orchestrator %s: %w", o.name, Permanent(err)))
	}
	return &Future[Out]{ctx: ctx, task: ctx.execution.callChild(o.name, input, merged)}
}
