package orchestratortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Entry is one run of the function of an activity, real or fake.
type Entry struct {
	Activity string
	Input    json.RawMessage
	// Info identifies the call and its attempt.
	Info orchestrator.ActivityInfo
	// Err is the error that the caller got. It is not nil if the function did its work and FailEverywhere made it
	// fail afterwards.
	Err error
}

// String returns the entry on one line.
func (e Entry) String() string {
	text := fmt.Sprintf("%s %s of %s, attempt %d", e.Activity, e.Input, e.Info.IdempotencyKey(), e.Info.Attempt)
	if e.Err != nil {
		text += fmt.Sprintf(", failed: %v", e.Err)
	}
	return text
}

var errNotReturned = errors.New("it did not return")

// ledger records the runs of activities, in the order of their start.
type ledger struct {
	mu      sync.Mutex
	entries []*Entry
}

// enter records the start of a function, and returns a function that records its end.
func (l *ledger) enter(e Entry) (ended func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, &e)
	return func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		e.Err = err
	}
}

func (l *ledger) all() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Entry
	for _, e := range l.entries {
		out = append(out, *e)
	}
	return out
}

// instrument wraps activities, so that the ledger records them and the injected failure happens.
func (w *world) instrument(activities []orchestrator.AnyActivity) []orchestrator.AnyActivity {
	all := slices.Clone(activities)
	for i, a := range all {
		if a == nil {
			continue // NewRuntime reports the error
		}
		all[i] = orchestrator.Around(a, func(ctx context.Context, input json.RawMessage, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
			return w.perform(ctx, a.Name(), input, next)
		})
	}
	return all
}

// perform runs an activity's function, unless its call fails before that.
func (w *world) perform(ctx context.Context, name string, input json.RawMessage, fn func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	info := orchestrator.Info(ctx)
	failure := w.failing.errorFor(info)
	if failure != nil && !w.failing.applied {
		return nil, failure
	}
	w.busy.Add(1)
	defer w.busy.Add(-1)
	ended := w.ledger.enter(Entry{Activity: name, Input: slices.Clone(input), Info: info})
	told := errNotReturned
	defer func() { ended(told) }()
	out, err := fn(ctx)
	if failure != nil {
		out, err = nil, failure
	}
	told = err
	return out, err
}
