package hmac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/secrets"
)

// activityRetire is the step that the history does not show.
const activityRetire = Engine + "/retire"

// Queue is the engine's message queue (standard, section 2, "Engine Values").
const Queue = "hmac-rotation-queue"

// Result is the result of a run: the version that the instance has to use.
type Result struct {
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
}

// calls are the engine's steps as its orchestrator calls them.
type calls struct {
	rotate *orchestrator.Activity[RotateInput, RotateOutput]
	notify *orchestrator.Activity[NotifyInput, NotifyOutput]
	retire *orchestrator.Activity[RetireInput, RetireOutput]
	// confirm is retire by an operator's decision; the history shows it.
	confirm *orchestrator.Activity[ConfirmInput, RetireOutput]
}

// Definition returns the engine over the steps. A message with the operation rotate, or none, makes the slot's key,
// notifies the instance, and retires the previous key when its grace is over. The operation notify only notifies it
// of the version in its input. Without a slot, the correlation id is the slot: the message asks for one rotation.
func Definition(steps *Steps) engine.Definition {
	retry := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 3, FirstInterval: time.Second, MaxInterval: 10 * time.Second, Jitter: 0.5})
	timeout := orchestrator.WithTimeout(time.Minute)
	later := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 6, FirstInterval: 10 * time.Second, MaxInterval: time.Minute, Jitter: 0.5})
	c := calls{
		rotate: orchestrator.NewActivity(OperationRotate, permanently(steps.Rotate), retry, timeout),
		notify: orchestrator.NewActivity(OperationNotify, permanently(steps.Notify), retry, timeout),
		retire: orchestrator.NewActivity(activityRetire, permanently(steps.Retire), later, timeout),

		confirm: orchestrator.NewActivity(Engine+"/"+OperationConfirm, permanently(steps.Confirm), later, timeout),
	}

	run := func(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (Result, error) {
		in, err := ParseInput(r.Operation, r.InstanceID, r.Input)
		if err != nil {
			return Result{}, orchestrator.Permanent(err)
		}
		key := Result{SecretName: in.SecretName, Version: in.Version}
		if in.Operation == OperationRotate {
			slot := in.Slot
			if slot == "" {
				slot = r.CorrelationID
			}
			made, err := c.rotate.Call(ctx, RotateInput{InstanceID: r.InstanceID, TenantID: r.TenantID, Slot: slot, JobID: r.CorrelationID,
				Again: ctx.Execution() - 1}).Await()
			if err != nil {
				return Result{}, fmt.Errorf("rotate the key of instance %s: %w", r.InstanceID, err)
			}
			key = Result{SecretName: made.SecretName, Version: made.Version}
		}
		told, err := c.notify.Call(ctx, NotifyInput{InstanceID: r.InstanceID, TenantID: r.TenantID, SecretName: key.SecretName, Version: key.Version}).Await()
		if err != nil {
			return Result{}, fmt.Errorf("notify instance %s: %w", r.InstanceID, err)
		}
		if in.Operation == OperationNotify || told.PreviousVersion == "" {
			return key, nil
		}
		return key, c.retireAfterGrace(ctx, told)
	}

	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Orchestrator: engine.Orchestrate(Engine, run),
		Operations:   []orchestrator.AnyActivity{c.rotate, c.notify, c.confirm},
		Activities:   []orchestrator.AnyActivity{c.retire},
		Owner:        steps.Owner,
		Tables:       []string{SlotsTable, consumers.Table},
		InputSchema:  json.RawMessage(inputSchema),
	}
}

// retireAfterGrace waits until the grace is over and consumers have the version, and then disables the older keys.
func (c calls) retireAfterGrace(ctx *orchestrator.Context, told NotifyOutput) error {
	// The end of the grace is a result, and results outlast a failed attempt: the next one does not restart the wait.
	if left := told.GraceEndsAtUtc.Sub(ctx.Now()); left > 0 {
		if err := ctx.Sleep(left); err != nil {
			return fmt.Errorf("wait until the grace of instance %s is over: %w", told.InstanceID, err)
		}
	}
	in := RetireInput{InstanceID: told.InstanceID, SecretName: told.SecretName, Version: told.Version, GraceEndsAtUtc: told.GraceEndsAtUtc}
	out, err := c.retire.Call(ctx, in).Await()
	if err == nil && out.Waiting != nil {
		err = c.await(ctx, in, out.Waiting)
	}
	if late, ok := errors.AsType[*consumers.OverdueError](err); ok {
		return engine.FailAs(engine.ReasonNotAcknowledged, late)
	}
	if err != nil {
		return fmt.Errorf("retire the older keys of instance %s: %w", told.InstanceID, err)
	}
	return nil
}

// await waits until consumers have the version, and then disables the older keys.
func (c calls) await(ctx *orchestrator.Context, in RetireInput, waiting *consumers.Waiting) error {
	in.Again = ctx.Execution() - 1
	return consumers.Await(ctx, consumers.Credential{Engine: Engine, Target: in.InstanceID}, waiting, consumers.Steps{
		Look: func(number int) (*consumers.Waiting, error) {
			in.Look = number
			out, err := c.retire.Call(ctx, in).Await()
			return out.Waiting, err
		},
		Confirm: func(by, note string) error {
			_, err := c.confirm.Call(ctx, ConfirmInput{in, by, note}).Await()
			return err
		},
	})
}

// permanently marks the errors of a step that only an operator can fix. A missing role is not among them: a new
// assignment takes minutes to become effective, and the attempts of a message wait for it.
func permanently[In, Out any](step func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := step(ctx, in)
		for _, hopeless := range []error{ErrInput, ErrVersionMissing, ErrVersionDisabled, secrets.ErrInvalid, secrets.ErrDeleted} {
			if errors.Is(err, hopeless) {
				return out, orchestrator.Permanent(err)
			}
		}
		return out, err
	}
}
