package orchestrator

import (
	"errors"
	"fmt"
	"time"
)

// ErrEarly: an event arrived before its orchestration was started. It is an ErrNotFound, too. Deliver it again after
// EarlyError.After.
var ErrEarly = errors.New("the event came before its orchestration")

// These are the pauses after which an event that arrived before its orchestration is redelivered.
const (
	earlyFirst = 5 * time.Second
	earlyMost  = 10 * time.Minute
	// earlyShare is the divisor of an event's age that gives its pause.
	earlyShare = 8
)

// EarlyError is ErrEarly with the orchestration and the time to wait.
type EarlyError struct {
	Orchestration string
	// After is the time until the event should be delivered again.
	After time.Duration
}

// Error returns the text of ErrEarly with the orchestration.
func (e *EarlyError) Error() string {
	return fmt.Sprintf("an event for orchestration %s: %v", e.Orchestration, ErrEarly)
}

// Is lets errors.Is find both ErrEarly and ErrNotFound.
func (e *EarlyError) Is(target error) bool { return target == ErrEarly || target == ErrNotFound }

// early returns the error of an event without an orchestration; nil when it no longer waits for that.
func (r *Runtime) early(s Signal) error {
	age := r.config.Now().Sub(s.OccurredAtUtc)
	if s.Type != ExternalSignal || s.Payload.Event == "" || s.OccurredAtUtc.IsZero() || age >= r.config.KeepEarly {
		return nil
	}
	return &EarlyError{Orchestration: s.InstanceID, After: max(earlyFirst, min(age/earlyShare, earlyMost))}
}
