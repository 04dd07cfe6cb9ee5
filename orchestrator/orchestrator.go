package orchestrator

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/vibedata/roundhouse/internal/payload"
)

// Orchestrator is a durable function; see the package comment.
type Orchestrator[In, Out any] struct {
	name    string
	fn      func(*Context, In) (Out, error)
	options orchestratorOptions
}

// AnyOrchestrator is an Orchestrator of any type, for registration.
type AnyOrchestrator interface {
	// Name returns the name in the rounds.
	Name() string
	// Version returns the version of WithVersion, "" without it.
	Version() string
	// CheckInput returns why an input is invalid for the orchestrator, nil if it is valid: see WithInputCheck.
	CheckInput(input json.RawMessage) error
	configured() orchestratorOptions
	run(ctx *Context, input json.RawMessage) (json.RawMessage, error)
}

// NewOrchestrator names fn. The name is kept in rounds. In and Out travel as JSON.
func NewOrchestrator[In, Out any](name string, fn func(*Context, In) (Out, error), options ...OrchestratorOption) *Orchestrator[In, Out] {
	o := &Orchestrator[In, Out]{name: name, fn: fn}
	for _, option := range options {
		option.applyOrchestrator(&o.options)
	}
	return o
}

// WithVersion names the version of an orchestrator's code. Several versions of one name may be registered. A new
// execution uses the one that was registered last, and a running one keeps the version with which it began. Remove a
// version when no execution of it is left; until then its executions stall with ErrUnknownOrchestrator.
func WithVersion(version string) OrchestratorOption {
	return orchestratorOption(func(o *orchestratorOptions) { o.version = version })
}

// DropEarlyEvents drops, with a warning, every event that arrives before a call waits for it (rounds document).
// Without this option, such events are kept until a call requests them.
func DropEarlyEvents() OrchestratorOption {
	return orchestratorOption(func(o *orchestratorOptions) { o.drop = true })
}

// WithInputCheck adds check to CheckInput, which always checks that an input is JSON of the orchestrator's type. Runs
// do not call it: they accept their input or fail with it.
func WithInputCheck(check func(input json.RawMessage) error) OrchestratorOption {
	return orchestratorOption(func(o *orchestratorOptions) { o.input = check })
}

// CheckInput returns, before a run begins, why an input is invalid for the orchestrator, nil if it is valid.
func (o *Orchestrator[In, Out]) CheckInput(input json.RawMessage) error {
	var in In
	if err := json.Unmarshal(input, &in); err != nil {
		return payload.Explain(err)
	}
	if o.options.input == nil {
		return nil
	}
	return o.options.input(input)
}

// Name returns the name in the rounds.
func (o *Orchestrator[In, Out]) Name() string { return o.name }

// Version returns the version of WithVersion, "" without it.
func (o *Orchestrator[In, Out]) Version() string { return o.options.version }

func (o *Orchestrator[In, Out]) configured() orchestratorOptions { return o.options }

func (o *Orchestrator[In, Out]) run(ctx *Context, input json.RawMessage) (json.RawMessage, error) {
	var in In
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, Permanent(fmt.Errorf("input of orchestrator %s: %w", o.name, payload.Explain(err)))
	}
	out, err := o.fn(ctx, in)
	if err != nil {
		return nil, err
	}
	output, err := encodePayload(out)
	if err != nil {
		return nil, Permanent(fmt.Errorf("output of orchestrator %s: %w", o.name, err))
	}
	return output, nil
}

// Call runs the orchestrator as a sub-orchestration and returns immediately. The sub-orchestration has its own rounds
// and the caller's correlation id. Its id begins with the caller's id unless WithID sets another one. It runs once per
// call. With WithRetry, a failed one makes another attempt, which keeps results by the rule for attempts (see the
// package comment). WithTimeout bounds each attempt.
func (o *Orchestrator[In, Out]) Call(ctx *Context, in In, options ...CallOption) *Future[Out] {
	if ctx.isCanceled() {
		return failedFuture[Out](ctx, canceledError(o.name))
	}
	input, merged, err := prepareCall(in, &callOptions{}, options)
	if err == nil {
		err = merged.forChild()
	}
	if err == nil {
		err = ctx.execution.checkChild(o.name, input, merged.id)
	}
	if err != nil {
		return failedFuture[Out](ctx, fmt.Errorf("call of orchestrator %s: %w", o.name, Permanent(err)))
	}
	return &Future[Out]{ctx: ctx, task: ctx.execution.callChild(ctx, o.name, input, merged)}
}

// Start starts the orchestrator as a detached orchestration: it has no caller, and continues when this one ends. An
// empty id is replaced by one that begins with this orchestration's id. If the id is taken, nothing is started. The
// orchestration begins when the round that decided on it is committed, and only then.
func (o *Orchestrator[In, Out]) Start(ctx *Context, id string, in In) (string, error) {
	if ctx.isCanceled() {
		return "", canceledError("start of orchestrator " + o.name)
	}
	if !ctx.execution.signals {
		return "", fmt.Errorf("start of orchestrator %s: %w", o.name, Permanent(ErrNoSignals))
	}
	input, err := encodePayload(in)
	if err == nil && id != "" {
		err = Start{ID: id, Input: input}.validate() // a start that is decided must not fail later
	}
	if err != nil {
		return "", fmt.Errorf("start of orchestrator %s: %w", o.name, Permanent(err))
	}
	return ctx.execution.detach(o.name, id, input), nil
}

// ParentClose is the policy for a sub-orchestration that is still running when its caller's execution ends. A caller
// that is terminated terminates all but the abandoned ones.
type ParentClose string

// These are the policies.
const (
	CancelChild    ParentClose = "cancel" // the default
	TerminateChild ParentClose = "terminate"
	AbandonChild   ParentClose = "abandon"
)

// WithParentClose sets the policy for the sub-orchestration when its caller ends first.
func WithParentClose(p ParentClose) CallOption {
	return callOption(func(o *callOptions) { o.close = p })
}

// WithID sets the id of a sub-orchestration, 1 to 400 bytes of UTF-8. Calls of one orchestration with the same id and
// the same input are one call: they get the same result. The call fails permanently with ErrConflict when the id is
// taken by anything else. That may be a call with another input, an orchestration with another starter, the caller
// itself, or a caller of the caller.
func WithID(id string) CallOption { return callOption(func(o *callOptions) { o.id = id }) }

// callRef identifies one attempt at a call of a sub-orchestration, by the caller's numbering.
type callRef struct {
	Execution int `json:"execution"`
	Task      int `json:"task"`
	Attempt   int `json:"attempt"`
	// Since is the caller's first execution from which results under this id still count. Work that the
	// sub-orchestration did for an earlier one was undone, or belongs to an attempt that starts over.
	Since int `json:"since,omitempty"`
}

// same reports whether both are attempts at the same call.
func (c callRef) same(other callRef) bool {
	return c.Execution == other.Execution && c.Task == other.Task
}

// before reports whether this attempt was made before the other.
func (c callRef) before(other callRef) bool {
	return cmp.Or(cmp.Compare(c.Execution, other.Execution), cmp.Compare(c.Task, other.Task), cmp.Compare(c.Attempt, other.Attempt)) < 0
}
