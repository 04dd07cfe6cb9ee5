package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/orchestrator"
)

// ErrLockLost: a run's lock expired, and another job has changed the registry since. The run fails, and its next
// attempt takes a new lock.
var ErrLockLost = errors.New("the registry lock was lost")

// The bounds of the pause between two attempts to take a lock that another job holds. The pause doubles, and ends
// when the lock expires.
const (
	firstLockPause   = 30 * time.Second
	longestLockPause = 5 * time.Minute
)

// LockSteps are the activities by which an engine's runs take, renew and release the registry lock. Add their
// Activities to Definition.Activities.
type LockSteps struct {
	acquire, renew *orchestrator.Activity[lockInput, lockResult]
	release        *orchestrator.Activity[lockInput, struct{}]
}

type lockInput struct {
	InstanceID string        `json:"instanceId"`
	JobID      string        `json:"jobId"`
	Duration   time.Duration `json:"duration"`
	// Execution distinguishes the calls of an execution from those of the ones before. An execution that timed out has
	// not undone its calls, and its lock cannot be taken over.
	Execution int `json:"execution"`
}

type lockResult struct {
	Held   bool      `json:"held"`
	Holder string    `json:"holder,omitempty"` // the job that holds the lock instead
	Until  time.Time `json:"until"`
}

// NewLockSteps makes the activities for an engine. Their names begin with the engine's name.
func NewLockSteps(engine string, locks Locks) *LockSteps {
	options := []orchestrator.CallOption{orchestrator.WithTimeout(time.Minute),
		orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 5, FirstInterval: time.Second, MaxInterval: 10 * time.Second, Jitter: 0.5})}
	ask := func(step func(context.Context, string, string, time.Duration) (registry.Instance, error)) func(context.Context, lockInput) (lockResult, error) {
		return func(ctx context.Context, in lockInput) (lockResult, error) {
			i, err := step(ctx, in.InstanceID, in.JobID, in.Duration)
			if locked, ok := errors.AsType[*registry.LockedError](err); ok {
				return lockResult{Holder: locked.Holder, Until: locked.Until}, nil
			}
			return lockResult{Held: true, Until: i.Lock.Until}, markPermanent(err)
		}
	}
	return &LockSteps{
		acquire: orchestrator.NewActivity(engine+"-lock-acquire", ask(locks.Acquire), options...),
		renew:   orchestrator.NewActivity(engine+"-lock-renew", ask(locks.Renew), options...),
		release: orchestrator.NewActivity(engine+"-lock-release", func(ctx context.Context, in lockInput) (struct{}, error) {
			return struct{}{}, markPermanent(locks.Release(ctx, in.InstanceID, in.JobID))
		}, options...),
	}
}

// markPermanent marks errors that only an operator can fix.
func markPermanent(err error) error {
	if errors.Is(err, registry.ErrInvalid) || errors.Is(err, registry.ErrDamaged) || errors.Is(err, registry.ErrNotFound) {
		return orchestrator.Permanent(err)
	}
	return err
}

// Activities returns the activities, for registration.
func (s *LockSteps) Activities() []orchestrator.AnyActivity {
	return []orchestrator.AnyActivity{s.acquire, s.renew, s.release}
}

// Locked runs fn under the registry lock of an instance, as the job JobID(ctx) (standard, section 1.8). It waits,
// durably, while another job has the lock, and takes the lock for d (0 for registry.DefaultLockDuration). It renews
// the lock while fn runs, and releases it after any end of fn: a result, an error, a panic, or a cancellation. After
// a crash, the process that continues releases it. A lock that cannot be released expires. When the lock is lost,
// waits in fn return ErrCanceled, and Locked returns ErrLockLost; otherwise it returns the error of fn. A
// cancellation of the orchestration reaches fn, and the lock is kept while fn cleans up (WithoutCancel).
//
// Every attempt takes a new lock. The release is an undo, so the next attempt still keeps results by the rule for
// attempts: completed calls of fn are not repeated. In between, other jobs may have held the lock. If they can
// invalidate a result, make ctx.Execution a part of the input of its call, so that the result is not kept.
func Locked(ctx *orchestrator.Context, steps *LockSteps, instanceID string, d time.Duration, fn func(*orchestrator.Context) error) error {
	if d <= 0 {
		d = registry.DefaultLockDuration
	}
	in := lockInput{InstanceID: instanceID, JobID: JobID(ctx), Duration: d, Execution: ctx.Execution()}
	lock, err := steps.acquireWhenFree(ctx, in)
	if err != nil {
		steps.unlock(ctx, lock, in) // the lock may be taken despite the error
		return fmt.Errorf("lock instance %s: %w", instanceID, err)
	}
	var panicked any
	over := false
	work := orchestrator.Go(ctx, func(ctx *orchestrator.Context) (_ struct{}, err error) {
		panicked, err = recoverPanic(ctx, fn)
		return struct{}{}, err
	})
	// When the orchestration is canceled, the work may have to clean up, and needs the lock for that.
	keep := orchestrator.Go(orchestrator.WithoutCancel(ctx), func(ctx *orchestrator.Context) (struct{}, error) {
		return struct{}{}, steps.renewUntilOver(ctx, in, &over)
	})
	orchestrator.Any(ctx, work, keep)
	var lost error
	if !work.Done() {
		_, lost = keep.Await()
		orchestrator.Cancel(ctx, work)
	}
	_, err = work.Await()
	over = true
	orchestrator.Cancel(ctx, keep)
	_, _ = keep.Await()
	steps.unlock(ctx, lock, in)
	if panicked != nil {
		panic(panicked)
	}
	if lost != nil {
		return errors.Join(lost, err)
	}
	return err
}

// recoverPanic runs fn and recovers its panic, which would otherwise end the orchestration before the lock is released.
func recoverPanic(ctx *orchestrator.Context, fn func(*orchestrator.Context) error) (panicked any, err error) {
	defer func() {
		if panicked = recover(); panicked != nil {
			ctx.Logger().Error("panic under the lock", "panic", panicked, "stack", string(debug.Stack()))
		}
	}()
	return nil, fn(ctx)
}

// acquireWhenFree takes the lock as soon as no other job has it. With an error, it returns the call that may have taken
// it, or nil.
func (s *LockSteps) acquireWhenFree(ctx *orchestrator.Context, in lockInput) (*orchestrator.Future[lockResult], error) {
	for pause := firstLockPause; ; pause = min(2*pause, longestLockPause) {
		lock := s.acquire.Call(ctx, in, orchestrator.WithUndo(s.release, in))
		r, err := lock.Await()
		if err != nil || r.Held {
			return lock, err
		}
		ctx.Logger().Info("the instance is locked: waiting", "instanceId", in.InstanceID, "holder", r.Holder, "until", r.Until)
		if err := ctx.Sleep(min(pause, max(time.Second, r.Until.Sub(ctx.Now())))); err != nil {
			return nil, err
		}
	}
}

// renewUntilOver renews the lock until the work is over. After a failed renewal, the next one makes up for it: a late
// renewal succeeds while the document is unchanged.
func (s *LockSteps) renewUntilOver(ctx *orchestrator.Context, in lockInput, over *bool) error {
	for {
		err := ctx.Sleep(in.Duration / 3)
		if err == nil {
			var r lockResult
			if r, err = s.renew.Call(ctx, in).Await(); err == nil && !r.Held {
				return fmt.Errorf("%w: instance %s, now held by %q", ErrLockLost, in.InstanceID, r.Holder)
			}
		}
		if *over {
			return nil
		}
		if err != nil {
			ctx.Logger().Warn("the lock was not renewed", "instanceId", in.InstanceID, "error", err)
		}
	}
}

// unlock releases the lock. A failure is only logged, because it must not undo the work of the run; the lock expires
// then.
func (s *LockSteps) unlock(ctx *orchestrator.Context, lock *orchestrator.Future[lockResult], in lockInput) {
	if lock == nil {
		return
	}
	if err := orchestrator.Undo(ctx, lock); err != nil {
		ctx.Logger().Warn("the lock is left to expire", "instanceId", in.InstanceID, "error", err)
	}
}
