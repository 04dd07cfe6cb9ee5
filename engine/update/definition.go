package update

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/release"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Result is the result of a run.
type Result struct {
	// Status is the outcome of a successful run: Updated, Rejected or Superseded.
	Status  release.Status `json:"status"`
	Version string         `json:"version,omitempty"`
	// Changes are the components, in the order of their updates.
	Changes []Change `json:"changes,omitempty"`
	// SupersededBy is the newer wanted version.
	SupersededBy *Wanted `json:"supersededBy,omitempty"`
	// ApprovedBy is the person who decided, if an approval was needed.
	ApprovedBy string `json:"approvedBy,omitempty"`
}

// errRolledBack marks the failure of an update that was rolled back completely.
var errRolledBack = errors.New("all components are what they were before")

// Definition returns the engine over the steps.
func Definition(steps *Steps) engine.Definition {
	c := steps.config
	held := orchestrator.WithError[*registry.LockedError]()
	options := []orchestrator.CallOption{held, orchestrator.WithTimeout(time.Minute),
		orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 4, FirstInterval: time.Second, MaxInterval: 10 * time.Second, Jitter: 0.5, Retryable: worthwhile})}
	patient := []orchestrator.CallOption{held, orchestrator.WithTimeout(time.Minute),
		orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 10_000, FirstInterval: 2 * time.Second, Coefficient: 1.5, MaxInterval: c.VerifyInterval,
			Timeout: c.VerifyTimeout, Retryable: worthwhile})}
	u := updater{
		locks:     engine.NewLockSteps(Engine, c.Registry),
		lock:      c.LockDuration,
		look:      orchestrator.NewActivity("update-look", permanently(steps.Look), options...),
		process:   orchestrator.NewActivity(OperationProcess, permanently(steps.Process), options...),
		component: orchestrator.NewActivity(OperationComponentUpdate, permanently(steps.ComponentUpdate), patient...),
		finish:    orchestrator.NewActivity("update-finish", permanently(steps.Finish), options...),
	}
	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Orchestrator: engine.Orchestrate(Engine, u.run),
		Operations:   []orchestrator.AnyActivity{u.process, u.component},
		Activities:   append(u.locks.Activities(), u.finish, u.look),
		Singleton:    engine.PerInstance,
		Owner:        engine.InstanceOwner,
	}
}

// updater is the steps as activities.
type updater struct {
	locks     *engine.LockSteps
	lock      time.Duration
	look      *orchestrator.Activity[ProcessInput, Look]
	process   *orchestrator.Activity[ProcessInput, Plan]
	component *orchestrator.Activity[ComponentInput, ComponentOutput]
	finish    *orchestrator.Activity[FinishInput, struct{}]
}

// run updates an instance, and reports the outcome to the publisher.
func (u updater) run(ctx *orchestrator.Context, r engine.Request[Input]) (Result, error) {
	if err := validate(r.Operation, r.InstanceID, r.Input); err != nil {
		return Result{}, orchestrator.Permanent(err)
	}
	if r.Operation == OperationComponentUpdate {
		r.Input.Version = ""
	}
	result, has, err := u.attempt(ctx, r)
	if ctx.Patched("the publisher is told the end") {
		if told := report(ctx, r, result, has, err); told != nil {
			err = errors.Join(err, told)
		}
	}
	if err != nil {
		return Result{}, err
	}
	return result, nil
}

// attempt updates the instance, if the request is valid. has is the previous version of the instance, if known.
func (u updater) attempt(ctx *orchestrator.Context, r engine.Request[Input]) (result Result, has string, err error) {
	look, err := u.lookFirst(ctx, r)
	if err != nil || look.SupersededBy != nil {
		return Result{Status: release.Superseded, Version: r.Input.Version, SupersededBy: look.SupersededBy}, look.Has, err
	}
	decision, err := approval(ctx, r, look.Approval)
	if err != nil {
		return Result{}, look.Has, err
	}
	if !decision.Output.Approved {
		return Result{Status: release.Rejected, ApprovedBy: decision.Who()}, look.Has, nil
	}
	var plan Plan
	err = engine.Locked(ctx, u.locks, r.InstanceID, u.lock, func(ctx *orchestrator.Context) error {
		var err error
		plan, err = u.update(ctx, r)
		return err
	})
	result = Result{Status: release.Updated, Version: r.Input.Version, Changes: plan.Changes, SupersededBy: plan.SupersededBy, ApprovedBy: decision.Who()}
	if plan.SupersededBy != nil {
		result.Status = release.Superseded
	}
	return result, plan.Has, err
}

// lookFirst finds the approver of an update, and whether the update is still wanted.
func (u updater) lookFirst(ctx *orchestrator.Context, r engine.Request[Input]) (Look, error) {
	asked := Look{Approval: r.Input.Approval}
	if asked.Approval == nil && r.Input.Ring == "" || !ctx.Patched("a look before the approval") {
		return asked, nil
	}
	look, err := u.look.Call(ctx, processInput(ctx, r)).Await()
	if err != nil {
		return Look{}, fmt.Errorf("look at the update of instance %s: %w", r.InstanceID, err)
	}
	if r.Input.Approval != nil {
		look.Approval = r.Input.Approval
	}
	return look, nil
}

func processInput(ctx *orchestrator.Context, r engine.Request[Input]) ProcessInput {
	return ProcessInput{InstanceID: r.InstanceID, JobID: engine.JobID(ctx), Version: r.Input.Version, Components: r.Input.Components,
		Ring: r.Input.Ring, Released: r.Input.Released, Downgrade: r.Input.Downgrade, Execution: ctx.Execution()}
}

// update brings the components to their versions, or back to the previous ones. Behind a newer update it does
// nothing.
func (u updater) update(ctx *orchestrator.Context, r engine.Request[Input]) (Plan, error) {
	job, execution := engine.JobID(ctx), ctx.Execution()
	planned := u.process.Call(ctx, processInput(ctx, r),
		orchestrator.WithUndo(u.finish, FinishInput{InstanceID: r.InstanceID, JobID: job, Execution: execution}))
	plan, err := planned.Await()
	if err != nil {
		return plan, fmt.Errorf("plan the update of instance %s: %w", r.InstanceID, err)
	}
	if plan.SupersededBy != nil {
		return plan, nil
	}
	var steps []done
	for _, c := range plan.Changes {
		in := ComponentInput{InstanceID: r.InstanceID, JobID: job, Change: c, Execution: execution, Revision: plan.Revision}
		step := done{c, u.component.Call(ctx, in, u.takenBack(in)...)}
		steps = append(steps, step)
		_, err := step.call.Await()
		if err == nil {
			continue
		}
		if lockGone(ctx, err) {
			return plan, fmt.Errorf("update component %s: %w", c.Component, err) // the current lock holder must not be disturbed
		}
		return plan, rollback(ctx, planned, steps, err)
	}
	// All is done: a cancellation is too late now.
	ctx = orchestrator.WithoutCancel(ctx)
	if _, err := u.finish.Call(ctx, FinishInput{InstanceID: r.InstanceID, JobID: job, Version: r.Input.Version, Execution: execution}).Await(); err != nil {
		return plan, err // the components have their versions: the next attempt finds that
	}
	return plan, nil
}

// done is a component that the update has changed, or tried to.
type done struct {
	Change
	call *orchestrator.Future[ComponentOutput]
}

// takenBack returns the undo of a component's update, if it had another version.
func (u updater) takenBack(in ComponentInput) []orchestrator.CallOption {
	if in.From == in.To {
		return nil
	}
	in.From, in.To, in.Rollback = in.To, in.From, true
	return []orchestrator.CallOption{orchestrator.WithUndo(u.component, in)}
}

// rollback undoes changes, the last first, then the plan, and reports the result. A cancellation does not stop it.
// Another attempt would repeat the same, so an operator has to check. The plan of an update that could not be undone
// stays in the registry: the next attempt needs the previous versions.
func rollback(ctx *orchestrator.Context, planned *orchestrator.Future[Plan], steps []done, cause error) error {
	failed := steps[len(steps)-1]
	cause = fmt.Errorf("update component %s to version %s: %w", failed.Component, failed.To, reason(cause))
	var errs []error
	for _, step := range slices.Backward(steps) {
		if err := orchestrator.Undo(ctx, step.call); err != nil {
			errs = append(errs, fmt.Errorf("take component %s back to version %q: %w", step.Component, step.From, err))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, orchestrator.Undo(ctx, planned))
	}
	if err := errors.Join(errs...); err != nil {
		return orchestrator.Permanent(fmt.Errorf("%w; the rollback is not complete, see to it: %w", cause, err))
	}
	return orchestrator.Permanent(fmt.Errorf("%w; %w", cause, errRolledBack))
}

// reason returns the error of an activity, without the number of its attempts, which were checks of a slow component.
func reason(err error) error {
	if e, ok := errors.AsType[*orchestrator.ActivityError](err); ok {
		return &e.Failure
	}
	return err
}

// lockGone reports whether a step failed because the run has lost its lock: it returned that error, or engine.Locked
// has interrupted it.
func lockGone(ctx *orchestrator.Context, err error) bool {
	_, canceled := ctx.Canceled()
	_, locked := errors.AsType[*registry.LockedError](err)
	return locked || (errors.Is(err, orchestrator.ErrCanceled) && !canceled)
}

// worthwhile reports whether another attempt can help. An expired lock may still be renewed; one that another job
// holds is lost.
func worthwhile(err error) bool {
	locked, ok := errors.AsType[*registry.LockedError](err)
	return !ok || locked.Holder == ""
}

// permanently marks the errors of a step that a repeat cannot fix.
func permanently[In, Out any](step func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := step(ctx, in)
		for _, hopeless := range []error{ErrInput, ErrRefused, ErrFailed, registry.ErrInvalid, registry.ErrDamaged, registry.ErrNotFound} {
			if errors.Is(err, hopeless) {
				return out, orchestrator.Permanent(err)
			}
		}
		return out, err
	}
}
