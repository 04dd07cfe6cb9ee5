package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// maxDrain bounds the duration of a drain.
	maxDrain = 7 * 24 * time.Hour
	// maxJobs bounds the orchestrations that are compared with a job id.
	maxJobs = 64
)

// drainOrder is the body of a drain.
type drainOrder struct {
	ForSeconds int    `json:"forSeconds"`
	Reason     string `json:"reason"`
}

// drainInstance acquires the lock of an instance for the caller, so that engines do not touch it: their messages
// wait, and lose no attempt.
func (a *api) drainInstance(ctx context.Context, r *request) (reply, error) {
	order := drainOrder{ForSeconds: int(registry.DefaultLockDuration / time.Second)}
	if err := r.decode(&order); err != nil {
		return reply{}, err
	}
	q := newQuery("")
	q.values.Set("reason", order.Reason)
	q.text("reason", maxOperatorReason)
	if order.ForSeconds < 1 || order.ForSeconds > int(maxDrain/time.Second) {
		q.problem("forSeconds", "Use a number from 1 to %d.", int(maxDrain/time.Second))
	}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	i, _, err := a.instanceAt(ctx, r)
	if err != nil {
		return reply{}, err
	}
	if err := r.call.Begin(ctx, instanceChange("drain", i, order.Reason)); err != nil {
		return reply{}, err
	}
	drained, err := a.registry.Acquire(ctx, i.InstanceID, drainJob+r.principal().ID(), time.Duration(order.ForSeconds)*time.Second)
	if err != nil {
		return reply{}, err
	}
	r.after = "drained until " + drained.Lock.Until.Format(time.RFC3339)
	return a.instanceReply(ctx, drained)
}

// resumeInstance releases the lock of a drain by any caller. An instance that is not drained stays unchanged.
func (a *api) resumeInstance(ctx context.Context, r *request) (reply, error) {
	return a.release(ctx, r, "resume", func(i registry.Instance) error {
		if !strings.HasPrefix(i.Lock.JobID, drainJob) && i.Lock.Held(a.now()) {
			return &failure{status: http.StatusConflict, header: retryAt(i.Lock.Until, a.now()), problem: problem{Code: codeInstanceLocked,
				Message: fmt.Sprintf("The instance is not drained: the job %s holds its lock until %s.", i.Lock.JobID, i.Lock.Until.Format(time.RFC3339))}}
		}
		return nil
	})
}

// unlockInstance removes the lock of a dead job. That of an active run stays: otherwise two jobs would change the
// protected data.
func (a *api) unlockInstance(ctx context.Context, r *request) (reply, error) {
	return a.release(ctx, r, "unlock", func(i registry.Instance) error {
		switch {
		case !i.Lock.Held(a.now()):
			return nil
		case strings.HasPrefix(i.Lock.JobID, drainJob):
			return &failure{status: http.StatusConflict, problem: problem{Code: codeInvalidState, Message: "The instance is drained: resume it."}}
		}
		return a.deadJob(ctx, i)
	})
}

// release removes the lock of an instance, if may returns nil.
func (a *api) release(ctx context.Context, r *request, action string, may func(registry.Instance) error) (reply, error) {
	if err := r.decode(&struct{}{}); err != nil {
		return reply{}, err
	}
	i, version, err := a.instanceAt(ctx, r)
	if err == nil {
		err = may(i)
	}
	if err != nil {
		return reply{}, err
	}
	if err := r.call.Begin(ctx, instanceChange(action, i, "")); err != nil {
		return reply{}, err
	}
	if i, err = a.registry.Break(ctx, i.InstanceID, i.Lock.JobID, version); err != nil {
		return reply{}, err
	}
	r.after = versionText(i)
	return a.instanceReply(ctx, i)
}

// deadJob returns nil when no orchestration runs as the job that holds the lock. A job is
// {orchestration}/{correlation id}, both of which may have slashes.
func (a *api) deadJob(ctx context.Context, i registry.Instance) error {
	job, tried := i.Lock.JobID, 0
	for at := range len(job) {
		if at == 0 || job[at] != '/' {
			continue
		}
		if tried++; tried > maxJobs {
			return &failure{status: http.StatusConflict, problem: problem{Code: codeInvalidState, Message: "It cannot be told whether the job " + job + " runs: wait until its lock expires."}}
		}
		s, err := a.runtime.Status(ctx, job[:at])
		if errors.Is(err, orchestrator.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if !s.Ended() && s.CorrelationID == job[at+1:] {
			return &failure{status: http.StatusConflict, header: retryAt(i.Lock.Until, a.now()), problem: problem{Code: codeInstanceLocked,
				Message: fmt.Sprintf("The lock is that of the orchestration %s, which is %s: wait until it ends, or terminate it, which gives the lock back.", s.ID, s.Status)}}
		}
	}
	return nil
}
