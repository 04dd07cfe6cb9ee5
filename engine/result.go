package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Result is the current state of a message.
type Result string

// The results.
const (
	// ResultWaiting: no process has received it, or it waits for another run or a lock.
	ResultWaiting Result = "Waiting"
	// ResultRunning: its run is in progress or waits, or another attempt follows.
	ResultRunning   Result = "Running"
	ResultSucceeded Result = "Succeeded"
	// ResultFailed: its run has ended, without success and without a pending dead letter.
	ResultFailed Result = "Failed"
	// ResultDead: it is a pending dead letter.
	ResultDead Result = "DeadLetter"
)

// Result returns the state of a message, by its correlation id, and by its instance and tenant for singletons. A
// message whose rows were deleted by retention looks like a waiting one. The cost is one read for a run that has
// succeeded, and at most three.
func (p *Pipeline) Result(ctx context.Context, engine string, m Message) (Result, error) {
	def, ok := p.byName[engine]
	if !ok {
		return "", fmt.Errorf("there is no engine %.128q", engine)
	}
	entries, err := p.config.History.Run(ctx, engine, m.CorrelationID)
	switch {
	case err != nil:
		return "", err
	case (recordedRun{entries}).succeeded():
		return ResultSucceeded, nil
	}
	letters, err := p.config.DeadLetters.Pending(ctx, engine, m.CorrelationID)
	if err != nil {
		return "", err
	}
	own := identity{m.TenantID, m.InstanceID, ""}
	letters = slices.DeleteFunc(letters, func(l DeadLetter) bool { return !own.sameOwner(identity{l.TenantID, l.InstanceID, ""}) })
	if len(letters) > 0 {
		return ResultDead, nil
	}
	if m.InstanceID == "" {
		m.InstanceID = PublisherInstance
	}
	a := &attempt{Pipeline: p, def: def, message: m}
	s, err := p.config.Runtime.Status(ctx, a.orchestrationID())
	switch {
	case err != nil && !errors.Is(err, orchestrator.ErrNotFound):
		return "", fmt.Errorf("run of engine %s under correlation id %s: %w", engine, m.CorrelationID, err)
	case err == nil && s.CorrelationID == m.CorrelationID && !s.Status.Ended():
		return ResultRunning, nil
	case len(entries) > 0:
		return ResultFailed, nil
	default:
		return ResultWaiting, nil
	}
}
