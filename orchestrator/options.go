package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// CallOption changes how an activity or a sub-orchestration is called.
type CallOption interface{ applyCall(*callOptions) }

// OrchestratorOption says more about an orchestrator.
type OrchestratorOption interface{ applyOrchestrator(*orchestratorOptions) }

type callOption func(*callOptions)

func (f callOption) applyCall(o *callOptions) { f(o) }

type orchestratorOption func(*orchestratorOptions)

func (f orchestratorOption) applyOrchestrator(o *orchestratorOptions) { f(o) }

type callOptions struct {
	retry     Retry
	timeout   time.Duration
	heartbeat time.Duration
	errors    errorTypes
	undo      *undoCall
	undoErr   error // why the undo cannot be called
	id        string
	close     ParentClose
}

type orchestratorOptions struct {
	version string
	drop    bool
}

func (o callOptions) validate() error {
	if o.timeout < 0 || o.heartbeat < 0 {
		return errors.New("timeout is negative")
	}
	return errors.Join(o.retry.validate(), o.undoErr)
}

// forActivity refuses what only a sub-orchestration can have.
func (o callOptions) forActivity() error {
	if o.id != "" || o.close != "" {
		return errors.New("WithID and WithParentClose are for sub-orchestrations")
	}
	return nil
}

// forChild refuses what a sub-orchestration cannot have.
func (o callOptions) forChild() error {
	switch o.close {
	case "", CancelChild, TerminateChild, AbandonChild:
	default:
		return fmt.Errorf("the parent close policy %.40q is none of CancelChild, TerminateChild and AbandonChild", o.close)
	}
	if o.id != "" && !validID(o.id) {
		return fmt.Errorf("the orchestration id needs 1 to 400 bytes of UTF-8, not %d", len(o.id))
	}
	return nil
}

// prepareCall is what a call of either kind begins with.
func prepareCall(in any, options callOptions, more []CallOption) (json.RawMessage, callOptions, error) {
	for _, o := range more {
		o.applyCall(&options)
	}
	if err := options.validate(); err != nil {
		return nil, options, err
	}
	input, err := encodePayload(in)
	return input, options, err
}

// WithRetry lets what failed run again.
func WithRetry(r Retry) CallOption { return callOption(func(o *callOptions) { o.retry = r }) }

// WithTimeout bounds each attempt of an activity: its context ends then, and the attempt counts as failed. 0 means that
// only the invocation bounds it. Of a sub-orchestration it bounds each attempt, too, which fails as TimedOut then.
func WithTimeout(d time.Duration) CallOption {
	return callOption(func(o *callOptions) { o.timeout = d })
}
