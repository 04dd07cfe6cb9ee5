package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/vibedata/roundhouse/internal/payload"
)

// Activity is a step that does real work: unlike an orchestrator, it may use the network, the clock and everything
// else. It can run more than once for one call, so it must be idempotent; ActivityInfo helps. In and Out are encoded
// as JSON and kept in the rounds: they must not hold secrets. It may run on the goroutine of its orchestration, so it
// must not return with its goroutine locked to a thread (runtime.LockOSThread).
type Activity[In, Out any] struct {
	name    string
	fn      func(context.Context, In) (Out, error)
	options callOptions
}

// AnyActivity is an Activity of any type, for registration.
type AnyActivity interface {
	// Name returns the name in the rounds.
	Name() string
	configured() callOptions
	check() error
	invoke(ctx context.Context, input json.RawMessage) (json.RawMessage, error)
}

// NewActivity names fn and sets options for all its calls. The name is kept in rounds: renaming an activity stalls the
// orchestrations that wait for it.
func NewActivity[In, Out any](name string, fn func(context.Context, In) (Out, error), options ...CallOption) *Activity[In, Out] {
	a := &Activity[In, Out]{name: name, fn: fn}
	for _, o := range options {
		o.applyCall(&a.options)
	}
	return a
}

// Name returns the name in the rounds.
func (a *Activity[In, Out]) Name() string { return a.name }

func (a *Activity[In, Out]) configured() callOptions { return a.options }

func (a *Activity[In, Out]) check() error {
	if err := checkName("an activity", a.name); err != nil {
		return err
	}
	if a.fn == nil {
		return fmt.Errorf("activity %s needs a function", a.name)
	}
	if err := a.options.validate(); err != nil {
		return fmt.Errorf("activity %s: %w", a.name, err)
	}
	return nil
}

// Call starts the activity and returns immediately. The activity runs at the same time as all other calls of the
// orchestrator; Await waits for its result.
func (a *Activity[In, Out]) Call(ctx *Context, in In, options ...CallOption) *Future[Out] {
	return &Future[Out]{ctx: ctx, task: a.call(ctx, in, options)} // this is inlined, so a call that is awaited directly allocates no memory
}

func (a *Activity[In, Out]) call(ctx *Context, in In, options []CallOption) *task {
	if ctx.isCanceled() {
		return failedTask(canceledError(a.name))
	}
	input, merged, err := prepareCall(in, &a.options, options)
	if err == nil {
		err = merged.forActivity()
	}
	if err != nil {
		return failedTask(fmt.Errorf("call of activity %s: %w", a.name, Permanent(err)))
	}
	return ctx.execution.callActivity(ctx, a.name, input, merged)
}

// invoke runs the function and converts a panic to an error.
func (a *Activity[In, Out]) invoke(ctx context.Context, input json.RawMessage) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: string(debug.Stack())}
		}
	}()
	var in In
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, Permanent(fmt.Errorf("input of activity %s: %w", a.name, payload.Explain(err)))
	}
	out, err := a.fn(ctx, in)
	if err != nil {
		return nil, err
	}
	output, err = encodePayload(out)
	if err != nil {
		return nil, Permanent(fmt.Errorf("output of activity %s: %w", a.name, err))
	}
	return output, nil
}

// Around returns an activity that runs fn in place of a; next is the activity itself. Use it for code that many
// activities share, such as traces and metrics, and for tests. Return the output of next unchanged, or replace it: its
// bytes must not be modified.
func Around(a AnyActivity, fn func(ctx context.Context, input json.RawMessage, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error)) AnyActivity {
	return around{a, fn}
}

type around struct {
	AnyActivity
	fn func(ctx context.Context, input json.RawMessage, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error)
}

func (a around) invoke(ctx context.Context, input json.RawMessage) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: string(debug.Stack())}
		}
	}()
	var passed json.RawMessage
	output, err = a.fn(ctx, input, func(ctx context.Context) (json.RawMessage, error) {
		out, err := a.AnyActivity.invoke(ctx, input)
		passed = out
		return out, err
	})
	if err != nil {
		return nil, err
	}
	if len(passed) > 0 && len(output) == len(passed) && &output[0] == &passed[0] {
		return output, nil // the output of next is unchanged, and encoded already
	}
	if output, err = encodePayload(output); err != nil {
		return nil, Permanent(fmt.Errorf("output of activity %s: %w", a.Name(), err))
	}
	return output, nil
}

// ActivityInfo identifies the call and the attempt that an activity runs for.
type ActivityInfo struct {
	// Orchestration is the id of the calling orchestration, and Execution is its generation.
	Orchestration string
	Execution     int
	// Task numbers the calls of an execution, from 1.
	Task int
	// Attempt is the number of this attempt at the call, from 1.
	Attempt int
	// CorrelationID is the correlation id of the orchestration.
	CorrelationID string
	// TenantID is the tenant that the orchestration belongs to, "" for the platform.
	TenantID string
	// Trace is the trace context of the attempt, as Config.Tracer makes it; "" for none.
	Trace string
	// Deadline is when the context of the attempt ends; zero for an unbounded attempt.
	Deadline time.Time
	// Progress is the last recorded progress of the call's heartbeats, of any attempt; nil without any.
	Progress json.RawMessage
}

// IdempotencyKey is the same for every attempt and redelivery of one call, and for no other call.
func (i ActivityInfo) IdempotencyKey() string {
	return fmt.Sprintf("%s/%d/%d", i.Orchestration, i.Execution, i.Task)
}

// Info returns the ActivityInfo of the running activity, or the zero value outside of an activity.
func Info(ctx context.Context) ActivityInfo {
	if a := attemptOf(ctx); a != nil {
		return a.info
	}
	return ActivityInfo{}
}
