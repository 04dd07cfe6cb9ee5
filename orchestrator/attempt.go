package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// attempt is one try to run an activity.
type attempt struct {
	info      ActivityInfo
	name      string
	input     json.RawMessage
	timeout   time.Duration
	heartbeat time.Duration
	record    func(progress json.RawMessage)
}

// attempt runs an activity once, as soon as this process has a free slot for it.
func (r *Runtime) attempt(ctx context.Context, a attempt) result {
	activity := r.activities[a.name]
	if activity == nil {
		return result{broken: true, err: fmt.Errorf("orchestration %s calls activity %q: %w", a.info.Orchestration, a.name, ErrUnknownActivity)}
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return result{err: ctx.Err()}
	}
	if a.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.timeout, &timeoutError{a.timeout})
		defer cancel()
	}
	a.info.Deadline, _ = ctx.Deadline()
	p := &heartbeatMonitor{record: a.record, interval: r.config.ProgressInterval, now: r.config.Now, recorded: r.config.Now()}
	ctx, stop := p.watch(&attemptContext{ctx, a.info, p}, a.heartbeat)
	defer stop()
	output, err := r.invoke(ctx, activity, a)
	if err == nil {
		return result{output: output}
	}
	return result{err: withTimeoutCause(ctx, err), progress: p.last()}
}

// attemptContext is the context of an attempt. Info and Heartbeat find the attempt through it.
type attemptContext struct {
	context.Context
	info    ActivityInfo
	monitor *heartbeatMonitor
}

type attemptKey struct{}

// Value returns the attempt for attemptKey, and what the parent context holds for every other key.
func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func attemptOf(ctx context.Context) *attemptContext {
	a, _ := ctx.Value(attemptKey{}).(*attemptContext)
	return a
}

// invoke calls the activity's function. It stops waiting for a function that ignores the end of its own time-out. The
// executor does the same for functions that ignore the end of the invocation.
func (r *Runtime) invoke(ctx context.Context, activity AnyActivity, a attempt) (json.RawMessage, error) {
	if a.timeout == 0 && a.heartbeat == 0 {
		return activity.invoke(ctx, a.input)
	}
	type returned struct {
		output json.RawMessage
		err    error
	}
	done := make(chan returned, 1)
	go func() {
		out := returned{err: errors.New("the activity called runtime.Goexit")}
		defer func() { done <- out }()
		out.output, out.err = activity.invoke(ctx, a.input)
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

// withTimeoutCause adds the time-out that ended the attempt, if one did, to the attempt's error.
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
