package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Scope is the scope within which a singleton engine has one run at a time (standard, section 1.8). Its runs share an
// orchestration id, {engine}-{instanceId} or {engine}-{tenantId} in lower case, one after the other. "" is for
// engines whose runs are independent.
type Scope string

// The scopes.
const (
	PerInstance Scope = "instance"
	PerTenant   Scope = "tenant"
)

// Locks is the part of the registry that singleton engines use; *registry.Registry implements it.
type Locks interface {
	Get(ctx context.Context, instanceID string) (registry.Instance, error)
	Acquire(ctx context.Context, instanceID, jobID string, d time.Duration) (registry.Instance, error)
	Renew(ctx context.Context, instanceID, jobID string, d time.Duration) (registry.Instance, error)
	Release(ctx context.Context, instanceID, jobID string) error
}

// ConflictError means that another run or job blocks a singleton's run. Over HTTP it is 409 with Retry-After; a
// message waits in its queue, without using up an attempt.
type ConflictError struct {
	Engine     string
	InstanceID string
	// Holder is the job that holds the registry lock, or the correlation id of the current run.
	Holder string
	// RetryAfter is the delay before a retry: at most until the lock expires.
	RetryAfter time.Duration
	// the error of the runtime; nil for a lock
	cause error
}

// Error names the run or the job.
func (e *ConflictError) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("engine %s has a run for instance %s already, come back in %v: %v", e.Engine, e.InstanceID, e.RetryAfter, e.cause)
	}
	return fmt.Sprintf("instance %s is locked by job %s, engine %s has to come back in %v", e.InstanceID, e.Holder, e.Engine, e.RetryAfter)
}

// Unwrap returns the error of the runtime, nil for a lock.
func (e *ConflictError) Unwrap() error { return e.cause }

// JobID returns the name of a singleton's run as the holder of the registry lock, for changes of the registry by the
// run. Call JobID in the engine's orchestrator, not in a sub-orchestration.
func JobID(ctx *orchestrator.Context) string { return jobOf(ctx.ID(), ctx.CorrelationID()) }

// jobOf returns a job id. The correlation id alone is not unique, because engines share correlation ids.
func jobOf(orchestration, correlationID string) string { return orchestration + "/" + correlationID }

// Conflict reports whether a message of a singleton engine would have to wait now: nil, a *ConflictError, or an error
// of storage. It lets senders check first, and changes nothing; a message that is sent nevertheless waits.
func (p *Pipeline) Conflict(ctx context.Context, m Message) error {
	def, ok := p.byName[m.Engine]
	if !ok {
		return fmt.Errorf("there is no engine %.128q", m.Engine)
	}
	if m.InstanceID == "" {
		m.InstanceID = PublisherInstance
	}
	a := &attempt{Pipeline: p, def: def, message: m}
	if err := a.checkLock(ctx); err != nil || def.Singleton == "" {
		return err
	}
	out, err := p.config.Runtime.Get(ctx, a.orchestrationID())
	switch {
	case errors.Is(err, orchestrator.ErrNotFound), err == nil && (out.Ended() || out.CorrelationID == m.CorrelationID):
		return nil
	case err != nil:
		return err
	}
	cause := fmt.Errorf("orchestration %s runs for correlation id %s: %w", out.ID, out.CorrelationID, orchestrator.ErrConflict)
	return &ConflictError{Engine: def.Name, InstanceID: m.InstanceID, Holder: out.CorrelationID, RetryAfter: p.config.ConflictDelay, cause: cause}
}

// orchestrationID returns the id of the run's orchestration, which runs of a singleton share.
func (a *attempt) orchestrationID() string {
	switch a.def.Singleton {
	case PerInstance:
		return a.def.Name + "-" + a.message.InstanceID
	case PerTenant:
		// All spellings are one tenant, whose id Microsoft Entra writes in lower case.
		return a.def.Name + "-" + strings.ToLower(tenant.Fold(a.message.TenantID))
	default:
		return a.def.Name + "-" + a.message.CorrelationID
	}
}

func (a *attempt) job() string { return jobOf(a.orchestrationID(), a.message.CorrelationID) }

// checkLock is the first check of a singleton (standard, section 1.8): it returns a *ConflictError if another job
// holds the lock. An instance that is not in the registry has no lock; the engine decides about it.
func (a *attempt) checkLock(ctx context.Context) error {
	if a.def.Singleton == "" || a.config.Locks == nil {
		return nil
	}
	i, err := a.config.Locks.Get(ctx, a.message.InstanceID)
	if errors.Is(err, registry.ErrNotFound) || errors.Is(err, registry.ErrInvalid) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the lock: %w", err)
	}
	now := a.config.Now()
	if !i.Lock.Held(now) || i.Lock.JobID == a.job() {
		return nil
	}
	return &ConflictError{Engine: a.def.Name, InstanceID: a.message.InstanceID, Holder: i.Lock.JobID,
		RetryAfter: min(a.config.ConflictDelay, i.Lock.Until.Sub(now))}
}

// checkFree reports whether the run can begin, and requeues a message that has to wait.
func (a *attempt) checkFree(ctx context.Context) bool {
	err := a.checkLock(ctx)
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		a.putBackConflict(ctx, conflict, conflict.RetryAfter)
		return false
	}
	if err != nil {
		a.fail(err)
		return false
	}
	return true
}

// putBackConflict requeues a message that has to wait, without using up an attempt.
func (a *attempt) putBackConflict(ctx context.Context, cause error, delay time.Duration) {
	a.cause = cause
	a.putBack(ctx, a.def.Queue, a.number-1, delay, Conflicting)
}

// releaseLock releases the lock of a run that has failed and could not do so itself, because it was terminated or timed
// out.
func (a *attempt) releaseLock(ctx context.Context) error {
	if a.def.Singleton == "" || a.config.Locks == nil {
		return nil
	}
	err := a.config.Locks.Release(ctx, a.message.InstanceID, a.job())
	if errors.Is(err, registry.ErrInvalid) {
		return nil // the instance does not exist
	}
	return err
}

// reuse returns the policy for ids: the runs of a singleton follow each other under one id.
func (d Definition) reuse() orchestrator.Reuse {
	if d.Singleton == "" {
		return orchestrator.ReuseNever
	}
	return orchestrator.ReuseEnded
}

// ownRun returns the state of the message's run. Among runs that share an orchestration id, it looks for the message's
// own.
func (a *attempt) ownRun(ctx context.Context) (orchestrator.Outcome, error) {
	out, err := a.config.Runtime.Get(ctx, a.orchestrationID())
	same := a.def.same(a.message)
	switch {
	case err != nil:
		return out, err
	case a.def.Singleton == "" && !same(out.Carry):
		return orchestrator.Outcome{}, fmt.Errorf("orchestration %s: %w", out.ID, orchestrator.ErrOtherWork)
	case a.def.Singleton == "":
		return out, nil
	}
	var own []orchestrator.Outcome
	for _, o := range append(slices.Clone(out.Earlier), out) {
		if o.CorrelationID == a.message.CorrelationID {
			o.Earlier = own
			own = append(slices.Clone(own), o)
		}
	}
	if len(own) == 0 {
		return orchestrator.Outcome{}, fmt.Errorf("orchestration %s has no run for correlation id %s: %w", out.ID, a.message.CorrelationID, orchestrator.ErrNotFound)
	}
	latest := own[len(own)-1]
	if !same(latest.Carry) {
		return orchestrator.Outcome{}, fmt.Errorf("orchestration %s: %w", out.ID, orchestrator.ErrOtherWork)
	}
	return latest, nil
}
