package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/registry"
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
	// Execution sets the steps of an execution apart from those of one that failed: their results are not to be had again.
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
			return lockResult{Held: true, Until: i.Lock.Until}, hopeless(err)
		}
	}
	return &LockSteps{
		acquire: orchestrator.NewActivity(engine+"-lock-acquire", ask(locks.Acquire), options...),
		renew:   orchestrator.NewActivity(engine+"-lock-renew", ask(locks.Renew), options...),
		release: orchestrator.NewActivity(engine+"-lock-release", func(ctx context.Context, in lockInput) (struct{}, error) {
			return struct{}{}, hopeless(locks.Release(ctx, in.InstanceID, in.JobID))
		}, options...),
	}
}

// hopeless marks what only a person can mend.
func hopeless(err error) error {
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
// while another job has the lock, takes it for d (0 for registry.DefaultLockDuration), renews it for as long as fn runs, and gives it up however fn ends: with
// an error, a panic, or because the orchestration is canceled; after a crash, the process that goes on does. A lock that
// cannot be given up expires. When the lock is lost, what fn waits for gives ErrCanceled, and Locked ErrLockLost. Else
// the error is fn's, a panic included.
//
// fn may be run again by the next execution, if this one fails: what it calls by then has to be harmless when repeated,
// and must not take results over that another job has undone since; give such calls ctx.Execution as part of their input.
func Locked(ctx *orchestrator.Context, steps *LockSteps, instanceID string, d time.Duration, fn func(*orchestrator.Context) error) error {
	if d <= 0 {
		d = registry.DefaultLockDuration
	}
	in := lockInput{InstanceID: instanceID, JobID: JobID(ctx), Duration: d, Execution: ctx.Execution()}
	if err := steps.wait(ctx, in); err != nil {
		steps.unlock(ctx, in) // it may have been taken all the same
		return fmt.Errorf("lock instance %s: %w", instanceID, err)
	}
	over := false
	work := orchestrator.Go(ctx, func(ctx *orchestrator.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
	keep := orchestrator.Go(ctx, func(ctx *orchestrator.Context) (struct{}, error) {
		return struct{}{}, steps.keep(ctx, in, &over)
	})
	orchestrator.Any(ctx, work, keep)
	var lost error
	if !work.Done() {
		_, lost = keep.Await()
		orchestrator.Cancel(ctx, work)
	}
	_, err := work.Await()
	over = true
	orchestrator.Cancel(ctx, keep)
	_, _ = keep.Await()
	steps.unlock(ctx, in)
	if lost != nil {
		return errors.Join(lost, err)
	}
	return err
}

// wait takes the lock as soon as nobody else has it.
func (s *LockSteps) wait(ctx *orchestrator.Context, in lockInput) error {
	for pause := firstLockPause; ; pause = min(2*pause, longestLockPause) {
		r, err := s.acquire.Call(ctx, in).Await()
		if err != nil || r.Held {
			return err
		}
		ctx.Logger().Info("the instance is locked: waiting", "instance", in.InstanceID, "holder", r.Holder, "until", r.Until)
		if _, err := orchestrator.Timer(ctx, min(pause, max(time.Second, r.Until.Sub(ctx.Now())))).Await(); err != nil {
			return err
		}
	}
}

// keep renews the lock until the work is over. It goes on when the orchestration is canceled, which interrupts its waits
// once, because the work may have something to undo. A renewal that fails is made up for by the next: one that comes too
// late is as good as long as nobody has changed the document.
func (s *LockSteps) keep(ctx *orchestrator.Context, in lockInput, over *bool) error {
	for {
		_, err := orchestrator.Timer(ctx, in.Duration/3).Await()
		if err == nil {
			var r lockResult
			if r, err = s.renew.Call(ctx, in).Await(); err == nil && !r.Held {
				return fmt.Errorf("%w: instance %s, now held by %q", ErrLockLost, in.InstanceID, r.Holder)
			}
		}
		if *over {
			return nil
		}
		if err != nil && !errors.Is(err, orchestrator.ErrCanceled) {
			ctx.Logger().Warn("the lock was not renewed", "instance", in.InstanceID, "reason", err)
		}
	}
}

// unlock gives the lock up. It is tried again when a cancellation comes in between; what fails besides is left to the
// lock's expiry, because it must not undo what the run has done.
func (s *LockSteps) unlock(ctx *orchestrator.Context, in lockInput) {
	var err error
	for range 3 {
		if _, err = s.release.Call(ctx, in).Await(); !errors.Is(err, orchestrator.ErrCanceled) {
			break
		}
	}
	if err != nil {
		ctx.Logger().Warn("the lock is left to expire", "instance", in.InstanceID, "reason", err)
	}
}
