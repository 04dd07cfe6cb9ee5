package orchestrator

import (
	"encoding/json"
	"fmt"
)

// Orchestrator is a durable function.
type Orchestrator[In, Out any] struct {
	name    string
	fn      func(*Context, In) (Out, error)
	options orchestratorOptions
}

// AnyOrchestrator is an Orchestrator of any type, for registration.
type AnyOrchestrator interface {
	// Name is the name that the rounds hold.
	Name() string
	configured() orchestratorOptions
	run(ctx *Context, input json.RawMessage) (json.RawMessage, error)
}

// NewOrchestrator names fn. The name is kept in rounds. In and Out travel as JSON.
func NewOrchestrator[In, Out any](name string, fn func(*Context, In) (Out, error), options ...OrchestratorOption) *Orchestrator[In, Out] {
	o := &Orchestrator[In, Out]{name: name, fn: fn}
	for _, set := range options {
		set(&o.options)
	}
	return o
}

// OrchestratorOption says more about an orchestrator.
type OrchestratorOption func(*orchestratorOptions)

type orchestratorOptions struct {
	version string
	drop    bool
}

// WithVersion names the version of an orchestrator's code. Several versions of one name may be registered: what begins
// takes the one that was registered last, and an execution keeps the version that it began with. Remove a version when
// none of its executions is left; until then those stall with ErrUnknownOrchestrator.
func WithVersion(version string) OrchestratorOption {
	return func(o *orchestratorOptions) { o.version = version }
}

// DropEarlyEvents drops, with a warning, an event that nobody waits for when it comes (rounds document). Without it,
// events are kept until somebody asks for them.
func DropEarlyEvents() OrchestratorOption { return func(o *orchestratorOptions) { o.drop = true } }

// Name is the name that the rounds hold.
func (o *Orchestrator[In, Out]) Name() string { return o.name }

func (o *Orchestrator[In, Out]) configured() orchestratorOptions { return o.options }

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
// as its next execution; WithTimeout bounds each execution of it.
func (o *Orchestrator[In, Out]) Call(ctx *Context, in In, options ...CallOption) *Future[Out] {
	input, merged, err := prepareCall(in, callOptions{}, options)
	if err != nil {
		return failedFuture[Out](ctx, fmt.Errorf("call of orchestrator %s: %w", o.name, Permanent(err)))
	}
	return &Future[Out]{ctx: ctx, task: ctx.execution.callChild(o.name, input, merged)}
}

// Start begins the orchestrator as an orchestration of its own, which nobody waits for: it goes on when this one ends. id
// is its id, "" for one that begins with this one's; an orchestration that has the id already is left alone. It begins
// when the round that decided it is committed, exactly if that happens.
func (o *Orchestrator[In, Out]) Start(ctx *Context, id string, in In) (string, error) {
	input, err := marshal(in)
	if err == nil && id != "" {
		err = Start{ID: id, Input: input}.validate() // once it is decided, it has to be possible
	}
	if err != nil {
		return "", fmt.Errorf("start of orchestrator %s: %w", o.name, Permanent(err))
	}
	return ctx.execution.detach(o.name, id, input), nil
}
