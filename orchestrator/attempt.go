package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// attempt is one try at an activity.
type attempt struct {
	info      ActivityInfo
	name      string
	input     json.RawMessage
	timeout   time.Duration
	heartbeat time.Duration
	record    func(progress json.RawMessage)
}

// attempt runs an activity once, as soon as this process has room for it.
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
	p := &pulse{record: a.record, interval: r.config.ProgressInterval, now: r.config.Now, recorded: r.config.Now()}
	ctx, stop := p.watch(context.WithValue(ctx, infoKey{}, a.info), a.heartbeat)
	defer stop()
	output, err := activity.invoke(ctx, a.input)
	if err == nil {
		return result{output: output}
	}
	return result{err: because(ctx, err), progress: p.last()}
}

// because names the time-out that made an attempt fail.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if timeout, ok := errors.AsType[*timeoutError](cause); ok {
		return fmt.Errorf("%w: %w", timeout, err)
	}
	if silent, ok := errors.AsType[*heartbeatError](cause); ok {
		return fmt.Errorf("%w: %w", silent, err)
	}
	return err
}
