package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/lazyctx"
)

// errGoexit is the failure of an attempt after its activity ended its goroutine.
var errGoexit = errors.New("the activity called runtime.Goexit")

// attempt is one try to run an activity, or to drive a sub-orchestration. It is the context of the activity, where
// Info and Heartbeat find it.
type attempt struct {
	context.Context // cancelable, or one with a timeout made from it
	cancelable      lazyctx.Context
	call            call // belongs to the driver
	info            ActivityInfo
	name            string
	input           json.RawMessage
	timeout         time.Duration
	heartbeat       time.Duration
	child           *Start // of a sub-orchestration; nil for an activity
	undoable        bool   // the activity has an undo
	undoes          string // idempotency key of the call that the activity undoes; "" for none
	undoesChild     string // id of the canceled sub-orchestration that it undoes; "" for none
	recorder        progressRecorder
	monitor         heartbeatMonitor
}

// progressRecorder receives the progress that an attempt reports.
type progressRecorder interface {
	record(a *attempt, progress json.RawMessage)
}

// init makes the attempt a context that ends with ctx. Call it before all other methods.
func (a *attempt) init(ctx context.Context) {
	a.cancelable.Init(ctx, time.Time{})
	a.Context = &a.cancelable
}

type attemptKey struct{}

// Value returns the attempt for attemptKey, and the parent context's value for every other key.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// attempt runs an activity once, as soon as this process has a free slot for it.
func (r *Runtime) attempt(a *attempt) result {
	activity := r.activities[a.name]
	if activity == nil {
		return result{broken: true, err: fmt.Errorf("orchestration %s calls activity %q: %w", a.info.Orchestration, a.name, ErrUnknownActivity)}
	}
	if err := r.awaitUndone(a, a.undoes); err != nil {
		return result{err: err}
	}
	if err := r.occupySlot(a); err != nil {
		return result{err: err}
	}
	defer func() { <-r.slots }()
	if a.timeout > 0 {
		var cancel context.CancelFunc
		a.Context, cancel = context.WithTimeoutCause(a.Context, a.timeout, &timeoutError{a.timeout})
		defer cancel()
	}
	a.info.Deadline, _ = a.Deadline()
	a.monitor.begin(r.config)
	ctx, stop := a.monitor.watch(a, a.heartbeat)
	defer stop()
	output, err := r.invoke(ctx, activity, a)
	if err == nil {
		return result{output: output}
	}
	return result{err: withTimeoutCause(ctx, err), progress: a.monitor.last()}
}

// occupySlot waits for a free slot of this process, or for the end of ctx.
func (r *Runtime) occupySlot(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case r.slots <- struct{}{}:
		return nil
	default: // ctx.Done allocates a channel, so it is called only if the attempt has to wait
	}
	select {
	case r.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// invoke calls the activity's function. It stops waiting for a function that ignores the end of its own timeout. The
// executor does the same for functions that ignore the end of the invocation.
func (r *Runtime) invoke(ctx context.Context, activity AnyActivity, a *attempt) (json.RawMessage, error) {
	if a.timeout == 0 && a.heartbeat == 0 {
		return r.call(ctx, activity, a)
	}
	type returned struct {
		output json.RawMessage
		err    error
	}
	done := make(chan returned, 1)
	go func() {
		out := returned{err: errGoexit}
		defer func() { done <- out }()
		out.output, out.err = r.call(ctx, activity, a)
	}()
	select {
	case out := <-done:
		return out.output, out.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(r.config.Grace)
	defer grace.Stop()
	select {
	case out := <-done:
		return out.output, out.err
	case <-grace.C:
		return nil, ctx.Err()
	}
}

// call calls the activity's function and registers that it runs.
func (r *Runtime) call(ctx context.Context, activity AnyActivity, a *attempt) (json.RawMessage, error) {
	if a.undoable {
		defer r.noteRunning(a.info.IdempotencyKey())()
	}
	return activity.invoke(ctx, a.input)
}

// withTimeoutCause adds the timeout that ended the attempt, if one did, to the attempt's error.
func withTimeoutCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if timeout, ok := errors.AsType[*timeoutError](cause); ok {
		return fmt.Errorf("%w: %w", timeout, err)
	}
	if silent, ok := errors.AsType[*heartbeatError](cause); ok {
		return fmt.Errorf("%w: %w", silent, err)
	}
	return err
}
