package spn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
)

// The types of the events: EventRotated announces a new secret to consumers, EventRetiring the end of an older one to
// its remaining users. Rotated and Retiring are their payloads.
const (
	EventRotated  = "spn.rotated"
	EventRetiring = "spn.retiring"
)

// The steps that the history does not show.
const (
	activityProbe  = Engine + "/probe"
	activityRetire = Engine + "/retire"
	activityRemove = Engine + "/remove"
)

// Result is the result of a run: the version of the secret with the password of this key id.
type Result struct {
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
	KeyID      string `json:"keyId"`
}

// Rotated is the payload of EventRotated. It is published when the login accepts the new secret. The event's tenant
// is the message's, or engine.PublisherInstance for none.
type Rotated struct {
	ApplicationID string `json:"applicationId"`
	InstanceID    string `json:"instanceId"`
	Slot          string `json:"slot"`
	SecretName    string `json:"secretName"`
	Version       string `json:"version"`
	KeyID         string `json:"keyId"`
	// CreatedAtUtc is when the version was made: consumers prefer later versions.
	CreatedAtUtc time.Time `json:"createdAtUtc"`
	// ExpiresAtUtc is the expiry of the new secret; RetireAtUtc is until when its predecessor works.
	ExpiresAtUtc time.Time `json:"expiresAtUtc"`
	RetireAtUtc  time.Time `json:"retireAtUtc"`
}

// Retiring is the payload of EventRetiring. It is published when the versions of the older passwords have been
// disabled. A consumer that still needs one enables its version again.
type Retiring struct {
	ApplicationID string `json:"applicationId"`
	InstanceID    string `json:"instanceId"`
	Slot          string `json:"slot"`
	// SecretName, Version and KeyID name the replacement.
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
	KeyID      string `json:"keyId"`
	// Passwords are removed at RemoveAtUtc.
	Passwords   []Password `json:"passwords"`
	RemoveAtUtc time.Time  `json:"removeAtUtc"`
}

// calls are the engine's steps as its orchestrator calls them.
type calls struct {
	rotate  *orchestrator.Activity[RotateInput, RotateOutput]
	probe   *orchestrator.Activity[ProbeInput, ProbeOutput]
	retire  *orchestrator.Activity[RetireInput, RetireOutput]
	confirm *orchestrator.Activity[ConfirmInput, RetireOutput]
	remove  *orchestrator.Activity[RetireInput, RemoveOutput]
}

// Definition returns the engine over the steps. Without a slot in the input, the correlation id is the slot: the
// message asks for one rotation.
func Definition(steps *Steps) engine.Definition {
	// Soon enough, but not before lists show the result of an attempt whose answer was lost; and in total longer than
	// inFlight.
	graph := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 6, FirstInterval: 20 * time.Second, MaxInterval: time.Minute})
	probing := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 1000, FirstInterval: 2 * time.Second, Coefficient: 1.5, MaxInterval: 30 * time.Second,
		Timeout: steps.config.ProbeFor})
	timeout := orchestrator.WithTimeout(time.Minute)
	c := calls{
		rotate:  orchestrator.NewActivity(Engine+"/"+OperationRotate, permanently(steps.Rotate), graph, orchestrator.WithTimeout(rotateTimeout)),
		probe:   orchestrator.NewActivity(activityProbe, permanently(steps.Probe), probing, timeout),
		retire:  orchestrator.NewActivity(activityRetire, permanently(steps.Retire), graph, timeout),
		confirm: orchestrator.NewActivity(Engine+"/"+OperationConfirm, permanently(steps.Confirm), graph, timeout),
		remove:  orchestrator.NewActivity(activityRemove, permanently(steps.Remove), graph, timeout),
	}
	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Orchestrator: engine.Orchestrate(Engine, c.run),
		Operations:   []orchestrator.AnyActivity{c.rotate, c.confirm},
		Activities:   []orchestrator.AnyActivity{c.probe, c.retire, c.remove},
		Tables:       []string{consumers.Table},
		InputSchema:  json.RawMessage(inputSchema),
	}
}

func (c calls) run(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (Result, error) {
	in, err := ParseInput(r.Operation, r.Input)
	if err != nil {
		return Result{}, orchestrator.Permanent(err)
	}
	slot := cmp.Or(in.Slot, r.CorrelationID)
	made, err := c.rotate.Call(ctx, RotateInput{ApplicationID: in.ApplicationID, Slot: slot, JobID: r.CorrelationID, Again: ctx.Execution() - 1}).Await()
	if err != nil {
		return Result{}, fmt.Errorf("rotate the secret of application %s: %w", in.ApplicationID, err)
	}
	result := Result{SecretName: made.SecretName, Version: made.Version, KeyID: made.KeyID}
	if made.Over {
		return result, nil
	}
	valid, err := c.probe.Call(ctx, ProbeInput{ApplicationID: in.ApplicationID, SecretName: made.SecretName, Version: made.Version}).Await()
	if err != nil {
		return Result{}, fmt.Errorf("wait until secret %s version %s is accepted: %w", made.SecretName, made.Version, err)
	}
	tenant := cmp.Or(r.TenantID, engine.PublisherInstance)
	err = publish(ctx, tenant, in.ApplicationID, EventRotated, rotatedKey(made.KeyID), Rotated{
		ApplicationID: in.ApplicationID, InstanceID: r.InstanceID, Slot: slot,
		SecretName: made.SecretName, Version: made.Version, KeyID: made.KeyID,
		CreatedAtUtc: made.CreatedAtUtc, ExpiresAtUtc: made.ExpiresAtUtc, RetireAtUtc: valid.RetireAtUtc,
	})
	if err != nil {
		return Result{}, err
	}
	// The end of the overlap is a result, and results outlast a failed attempt: the next one does not restart the
	// wait.
	if left := valid.RetireAtUtc.Sub(ctx.Now()); left > 0 {
		if err := ctx.Sleep(left); err != nil {
			return Result{}, fmt.Errorf("wait for the end of the overlap of application %s: %w", in.ApplicationID, err)
		}
	}
	retiring := RetireInput{ApplicationID: in.ApplicationID, Slot: slot, SecretName: made.SecretName, Version: made.Version, KeyID: made.KeyID}
	out, err := c.retireWhenArrived(ctx, retiring)
	if err != nil || out.RemoveAtUtc.IsZero() {
		return result, err
	}
	err = publish(ctx, tenant, in.ApplicationID, EventRetiring, EventRetiring+"/"+made.KeyID+"/"+out.RemoveAtUtc.Format(time.RFC3339), Retiring{
		ApplicationID: in.ApplicationID, InstanceID: r.InstanceID, Slot: slot, SecretName: made.SecretName, Version: made.Version, KeyID: made.KeyID,
		Passwords: out.Passwords, RemoveAtUtc: out.RemoveAtUtc,
	})
	if err != nil {
		return Result{}, err
	}
	return result, c.removeLater(ctx, retiring, out.RemoveAtUtc)
}

// retireWhenArrived disables the versions of the older passwords, when consumers have the new one.
func (c calls) retireWhenArrived(ctx *orchestrator.Context, in RetireInput) (RetireOutput, error) {
	out, err := c.retire.Call(ctx, in).Await()
	if err == nil && out.Waiting != nil {
		again := in
		again.Again = ctx.Execution() - 1
		err = consumers.Await(ctx, consumers.Credential{Engine: Engine, Target: in.ApplicationID}, out.Waiting, consumers.Steps{
			Look: func(number int) (waiting *consumers.Waiting, err error) {
				again.Look = number
				out, err = c.retire.Call(ctx, again).Await()
				return out.Waiting, err
			},
			Confirm: func(by, note string) (err error) {
				out, err = c.confirm.Call(ctx, ConfirmInput{again, by, note}).Await()
				return err
			},
		})
	}
	if late, ok := errors.AsType[*consumers.OverdueError](err); ok {
		return RetireOutput{}, engine.FailAs(engine.ReasonNotAcknowledged, late)
	}
	if err != nil {
		return RetireOutput{}, fmt.Errorf("retire the older passwords of application %s: %w", in.ApplicationID, err)
	}
	return out, nil
}

// removeLater removes the older passwords unless a consumer has objected.
func (c calls) removeLater(ctx *orchestrator.Context, in RetireInput, at time.Time) error {
	if left := at.Sub(ctx.Now()); left > 0 {
		if err := ctx.Sleep(left); err != nil {
			return fmt.Errorf("wait until the older passwords of application %s are removed: %w", in.ApplicationID, err)
		}
	}
	out, err := c.remove.Call(ctx, in).Await()
	if err != nil {
		return fmt.Errorf("remove the older passwords of application %s: %w", in.ApplicationID, err)
	}
	if len(out.Kept) > 0 {
		return engine.FailAs(engine.ReasonStillInUse, &InUseError{in.ApplicationID, out.Kept})
	}
	return nil
}

// rotatedKey returns the key of the event that announces a password.
func rotatedKey(keyID string) string { return EventRotated + "/" + keyID }

// publish publishes an event, in order for each application, and once for each key.
func publish(ctx *orchestrator.Context, tenant, application, eventType, key string, event any) error {
	payload, err := json.Marshal(event)
	if err != nil {
		return orchestrator.Permanent(fmt.Errorf("publish %s: %w", eventType, err))
	}
	return ctx.Publish(orchestrator.Publication{TenantID: tenant, Type: eventType, Payload: payload, Key: key, OrderKey: Engine + "/" + application})
}

// permanently marks the errors of a step that only an operator can fix. A missing role is not among them: a new
// assignment takes minutes to become effective; nor is a missing application: a new one takes as long to become
// visible.
func permanently[In, Out any](step func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := step(ctx, in)
		for _, hopeless := range []error{ErrInput, ErrKeyMissing, entra.ErrInvalid, secrets.ErrInvalid, secrets.ErrDeleted} {
			if errors.Is(err, hopeless) {
				return out, orchestrator.Permanent(err)
			}
		}
		return out, err
	}
}
