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

// ErrLockLost: a run's lock expired, and another job has changed the registry since. The run fails, and goes on under a
// new lock with its next attempt.
var ErrLockLost = errors.New("the registry lock was lost")

// The pauses between two looks at a lock that another job holds. The pause doubles, and ends when the lock expires.
const (
	firstLockPause   = 30 * time.Second
	longestLockPause = 5 * time.Minute
)

// LockSteps are the durable steps by which an engine's runs take, keep and give up the registry lock. Their Activities
// belong into Definition.Activities.
type LockSteps struct {
	acquire, renew *orchestrator.Activity[lockInput, lockResult]
	release        *orchestrator.Activity[lockInput, struct{}]
}

type lockInput struct {
	InstanceID string        `json:"instanceId"`
	JobID      string        `json:"jobId"`
	Duration   time.Duration `json:"duration"`
	// Execution sets the steps of an execution apart from those of the ones before: one whose time was over has not undone
	// them by itself, and its lock is not to be had any more.
	Execution int `json:"execution"`
}

type lockResult struct {
	Held   bool      `json:"held"`
	Holder string    `json:"holder,omitempty"` // that has it instead
	Until  time.Time `json:"until"`
}

// NewLockSteps makes the steps of an engine; activities are named after it.
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

// markPermanent marks what only a person can mend.
func markPermanent(err error) error {
	if errors.Is(err, registry.ErrInvalid) || errors.Is(err, registry.ErrDamaged) {
		return orchestrator.Permanent(err)
	}
	return err
}

// Activities are the steps, to be registered.
func (s *LockSteps) Activities() []orchestrator.AnyActivity {
	return []orchestrator.AnyActivity{s.acquire, s.renew, s.release}
}

// Locked runs fn under the registry lock of an instance, as the job JobID(ctx) (standard, section 1.8). It waits, durably,
// while another job has the lock, takes it for d (0 for registry.DefaultLockDuration), renews it for as long as fn runs,
// and gives it up however fn ends: with an error, a panic, or because the orchestration is canceled; after a crash, the
// process that goes on does. A lock that cannot be given up expires. When the lock is lost, what fn waits for gives
// ErrCanceled, and Locked ErrLockLost. Else the error is fn's. A cancellation of the orchestration reaches fn, and the lock
// is kept for as long as fn cleans up (WithoutCancel).
//
// The lock is taken anew by each attempt. To give it up is an undo, so that it takes nothing from what the next attempt
// keeps of this one: what fn has called is not called again, as the rule for attempts says. In between, other jobs may have
// had the lock. Results that these can have made untrue must not be taken over: give such calls ctx.Execution as part of
// their input.
func Locked(ctx *orchestrator.Context, steps *LockSteps, instanceID string, d time.Duration, fn func(*orchestrator.Context) error) error {
	if d <= 0 {
		d = registry.DefaultLockDuration
	}
	in := lockInput{InstanceID: instanceID, JobID: JobID(ctx), Duration: d, Execution: ctx.Execution()}
	lock, err := steps.acquireWhenFree(ctx, in)
	if err != nil {
		steps.unlock(ctx, lock, in) // it may have been taken all the same
		return fmt.Errorf("lock instance %s: %w", instanceID, err)
	}
	var panicked any
	over := false
	work := orchestrator.Go(ctx, func(ctx *orchestrator.Context) (_ struct{}, err error) {
		panicked, err = recoverPanic(ctx, fn)
		return struct{}{}, err
	})
	// The work may have something to clean up when the orchestration is canceled, and needs the lock for that.
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

// recoverPanic runs fn and catches its panic, which would end the orchestration before the lock is given up.
func recoverPanic(ctx *orchestrator.Context, fn func(*orchestrator.Context) error) (panicked any, err error) {
	defer func() {
		if panicked = recover(); panicked != nil {
			ctx.Logger().Error("panic under the lock", "panic", panicked, "stack", string(debug.Stack()))
		}
	}()
	return nil, fn(ctx)
}

// acquireWhenFree takes the lock as soon as nobody else has it. With an error, it gives the call that may have taken it, or nil.
func (s *LockSteps) acquireWhenFree(ctx *orchestrator.Context, in lockInput) (*orchestrator.Future[lockResult], error) {
	for pause := firstLockPause; ; pause = min(2*pause, longestLockPause) {
		lock := s.acquire.Call(ctx, in, orchestrator.WithUndo(s.release, in))
		r, err := lock.Await()
		if err != nil || r.Held {
			return lock, err
		}
		ctx.Logger().Info("the instance is locked: waiting", "instance", in.InstanceID, "holder", r.Holder, "until", r.Until)
		if err := ctx.Sleep(min(pause, max(time.Second, r.Until.Sub(ctx.Now())))); err != nil {
			return nil, err
		}
	}
}

// renewUntilOver renews the lock until the work is over. A renewal that fails is made up for by the next: one that comes too late is
// as good as long as nobody has changed the document.
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
			ctx.Logger().Warn("the lock was not renewed", "instance", in.InstanceID, "reason", err)
		}
	}
}

// unlock gives the lock up. What fails is left to the lock's expiry, because it must not undo what the run has done.
func (s *LockSteps) unlock(ctx *orchestrator.Context, lock *orchestrator.Future[lockResult], in lockInput) {
	if lock == nil {
		return
	}
	if err := orchestrator.Undo(ctx, lock); err != nil {
		ctx.Logger().Warn("the lock is left to expire", "instance", in.InstanceID, "reason", err)
	}
}
