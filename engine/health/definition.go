package health

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/orchestrator"
)

// patchScheduled is passed by runs that record whether a schedule asked for the check.
const patchScheduled = "scheduled"

// Input is the engine's own part of a message.
type Input struct {
	// Slot is when the check was due: a check of a slot that began later makes it unnecessary. Without a slot, the
	// check always runs.
	Slot time.Time `json:"slot,omitzero"`
}

// Result is the result of a run.
type Result struct {
	// Superseded means that a check of a later slot had already run, and nothing was done.
	Superseded bool `json:"superseded,omitempty"`
	// Status is the status of the instance.
	Status Status `json:"status,omitempty"`
	// Ill are the components that are not healthy.
	Ill []Finding `json:"ill,omitempty"`
}

// Definition returns the engine over the steps.
func Definition(steps *Steps) engine.Definition {
	c := steps.config
	locks := engine.NewLockSteps(Engine, c.Registry)
	retry := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 4, FirstInterval: time.Second, MaxInterval: 10 * time.Second, Jitter: 0.5, Retryable: worthwhile})
	// A single failed request is no outage.
	twice := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 2, FirstInterval: time.Second})
	held := orchestrator.WithError[*registry.LockedError]()
	checks := checker{
		list:      orchestrator.NewActivity(Engine+"/list", permanently(steps.List), retry, orchestrator.WithTimeout(time.Minute)),
		check:     orchestrator.NewActivity(Engine+"/"+OperationCheck, permanently(steps.Check), twice, orchestrator.WithTimeout(c.CheckTimeout)),
		aggregate: orchestrator.NewActivity(Engine+"/"+OperationAggregate, permanently(steps.Aggregate), retry, orchestrator.WithTimeout(time.Minute), held),
		told:      orchestrator.NewActivity(Engine+"/told", permanently(steps.Told), retry, orchestrator.WithTimeout(time.Minute), held),
	}
	run := func(ctx *orchestrator.Context, r engine.Request[Input]) (Result, error) {
		if err := validate(r); err != nil {
			return Result{}, orchestrator.Permanent(err)
		}
		began := ctx.Now()
		list, err := checks.list.Call(ctx, ListInput{InstanceID: r.InstanceID, Slot: r.Input.Slot, Execution: ctx.Execution()}).Await()
		if err != nil || list.Superseded {
			return Result{Superseded: list.Superseded}, err
		}
		findings, err := checks.all(ctx, r.InstanceID, list.Components)
		if err != nil {
			return Result{}, err
		}
		scheduled := !r.Input.Slot.IsZero() && ctx.Patched(patchScheduled)
		var result Result
		err = engine.Locked(ctx, locks, r.InstanceID, c.LockDuration, func(ctx *orchestrator.Context) error {
			out, err := checks.aggregate.Call(ctx, AggregateInput{InstanceID: r.InstanceID, JobID: engine.JobID(ctx), CheckedAt: began,
				Findings: findings, Scheduled: scheduled, Execution: ctx.Execution()}).Await()
			result.Status = out.Status
			if err != nil || out.Change.IsZero() {
				return err
			}
			return checks.tell(ctx, r, out)
		})
		if err != nil {
			return Result{}, err
		}
		for _, f := range findings {
			if f.Status != Healthy {
				result.Ill = append(result.Ill, f)
			}
		}
		return result, nil
	}
	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Orchestrator: engine.Orchestrate(Engine, run),
		Operations:   []orchestrator.AnyActivity{checks.check, checks.aggregate},
		Activities:   append(locks.Activities(), checks.list, checks.told),
		Singleton:    engine.PerInstance,
		Owner:        engine.InstanceOwner,
	}
}

// validate checks the request of a message.
func validate(r engine.Request[Input]) error {
	switch {
	case r.InstanceID == engine.PublisherInstance:
		return fmt.Errorf("%w: instanceId is required", ErrInput)
	case r.Operation != "" && r.Operation != OperationCheck:
		return fmt.Errorf("%w: the operation %.64q cannot be asked for, only %s", ErrInput, r.Operation, OperationCheck)
	default:
		return nil
	}
}

// checker is the steps as activities.
type checker struct {
	list      *orchestrator.Activity[ListInput, List]
	check     *orchestrator.Activity[CheckInput, Finding]
	aggregate *orchestrator.Activity[AggregateInput, AggregateOutput]
	told      *orchestrator.Activity[ToldInput, struct{}]
}

// tell publishes the change of the instance's status, and then records that. If the run dies in between, the next one
// publishes the same event once more.
func (c checker) tell(ctx *orchestrator.Context, r engine.Request[Input], now AggregateOutput) error {
	payload, err := json.Marshal(release.Health{InstanceID: r.InstanceID, Status: string(now.Status), SinceUtc: now.Change})
	if err != nil {
		return orchestrator.Permanent(fmt.Errorf("publish the health of instance %s: %w", r.InstanceID, err))
	}
	err = ctx.Publish(orchestrator.Publication{TenantID: cmp.Or(r.TenantID, engine.PublisherInstance), Type: release.EventHealth, Payload: payload, OrderKey: engine.OrderKey(r.InstanceID),
		Key: engine.DeriveCorrelationID(release.EventHealth, r.InstanceID, string(now.Status), now.Change.Format(time.RFC3339Nano))})
	if err != nil {
		return err
	}
	_, err = c.told.Call(ctx, ToldInput{InstanceID: r.InstanceID, JobID: engine.JobID(ctx), Change: now.Change, Execution: ctx.Execution()}).Await()
	return err
}

// all checks the components, all in parallel. A component without an answer is unhealthy; the error is a
// cancellation.
func (c checker) all(ctx *orchestrator.Context, instanceID string, components []string) ([]Finding, error) {
	calls := make([]*orchestrator.Future[Finding], len(components))
	for n, name := range components {
		calls[n] = c.check.Call(ctx, CheckInput{InstanceID: instanceID, Component: name, Execution: ctx.Execution()})
	}
	findings := make([]Finding, len(components))
	for n, call := range calls {
		finding, err := call.Await()
		if errors.Is(err, orchestrator.ErrCanceled) {
			return nil, err
		}
		if err != nil {
			finding = Finding{Component: components[n], Report: Report{Status: Unhealthy, Message: brief(reason(err))}}
		}
		finding.Sent = nil // for the history of the check, not for the registry
		findings[n] = finding
	}
	return findings, nil
}

// reason returns the error of an activity, without the number of its attempts.
func reason(err error) string {
	if e, ok := errors.AsType[*orchestrator.ActivityError](err); ok {
		return e.Failure.Error()
	}
	return err.Error()
}

// worthwhile reports whether another attempt can help: a lock that another job holds is lost.
func worthwhile(err error) bool {
	locked, ok := errors.AsType[*registry.LockedError](err)
	return !ok || locked.Holder == ""
}
