package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// CallOption configures the call of an activity or a sub-orchestration.
type CallOption interface{ applyCall(*callOptions) }

// OrchestratorOption configures an orchestrator.
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
	local     bool
}

type orchestratorOptions struct {
	version string
	drop    bool
	input   func(input json.RawMessage) error
}

func (o callOptions) validate() error {
	if o.timeout < 0 || o.heartbeat < 0 {
		return errors.New("timeout is negative")
	}
	return errors.Join(o.retry.validate(), o.undoErr)
}

// forActivity rejects options that are for sub-orchestrations only.
func (o callOptions) forActivity() error {
	if o.id != "" || o.close != "" {
		return errors.New("WithID and WithParentClose are for sub-orchestrations")
	}
	if o.local && o.heartbeat > 0 {
		return errors.New("WithLocal is for short steps, and WithHeartbeat for long ones")
	}
	return nil
}

// forChild validates the options that are for sub-orchestrations.
func (o callOptions) forChild() error {
	switch o.close {
	case "", CancelChild, TerminateChild, AbandonChild:
	default:
		return fmt.Errorf("the parent close policy %.40q is none of CancelChild, TerminateChild and AbandonChild", o.close)
	}
	if o.local {
		return errors.New("WithLocal is for activities")
	}
	if o.id != "" && !validID(o.id) {
		return fmt.Errorf("the orchestration id needs 1 to 400 bytes of UTF-8, not %d", len(o.id))
	}
	return nil
}

// prepareCall merges and validates the options of a call, and encodes its input. Calls without options of their own
// share the options of their activity or orchestrator, which never change.
func prepareCall(in any, options *callOptions, more []CallOption) (json.RawMessage, *callOptions, error) {
	if len(more) > 0 {
		merged := *options
		for _, option := range more {
			option.applyCall(&merged)
		}
		options = &merged
	}
	if err := options.validate(); err != nil {
		return nil, options, err
	}
	input, err := encodePayload(in)
	return input, options, err
}

// WithRetry sets the retry policy of a call.
func WithRetry(r Retry) CallOption { return callOption(func(o *callOptions) { o.retry = r }) }

// WithTimeout bounds each attempt. The context of an activity ends then, and the attempt counts as failed; with 0,
// only the invocation bounds it. An attempt of a sub-orchestration fails as TimedOut.
func WithTimeout(d time.Duration) CallOption {
	return callOption(func(o *callOptions) { o.timeout = d })
}
