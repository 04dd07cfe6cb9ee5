package spn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
)

// EventRotated is the type of the event that tells consumers of a new secret; Rotated is its payload.
const EventRotated = "spn.rotated"

// The steps that the history does not show.
const (
	activityProbe  = Engine + "/probe"
	activityRetire = Engine + "/retire"
)

// Result is what a run leaves behind: which version of which secret holds the password with this key id.
type Result struct {
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
	KeyID      string `json:"keyId"`
}

// Rotated is the payload of EventRotated. It goes out when the login accepts the new secret. The event's tenant is the
// message's, or engine.PublisherInstance when it has none.
type Rotated struct {
	ApplicationID string `json:"applicationId"`
	InstanceID    string `json:"instanceId"`
	Slot          string `json:"slot"`
	SecretName    string `json:"secretName"`
	Version       string `json:"version"`
	KeyID         string `json:"keyId"`
	// CreatedAtUtc is when the version was made: one that was made later is to be preferred.
	CreatedAtUtc time.Time `json:"createdAtUtc"`
	// ExpiresAtUtc is when the new secret ends; RetireAtUtc is until when the one before it works.
	ExpiresAtUtc time.Time `json:"expiresAtUtc"`
	RetireAtUtc  time.Time `json:"retireAtUtc"`
}

// Definition is the engine over the steps. Without a slot in the input, the correlation id is the slot: the message asks
// for one rotation.
func Definition(steps *Steps) engine.Definition {
	// Soon enough, but not before lists show what an attempt made whose answer was lost; and in all longer than inFlight.
	graph := orchestrator.Retry{MaxAttempts: 6, FirstInterval: 20 * time.Second, MaxInterval: time.Minute}
	probing := orchestrator.Retry{MaxAttempts: 1000, FirstInterval: 2 * time.Second, Coefficient: 1.5, MaxInterval: 30 * time.Second,
		Timeout: steps.config.ProbeFor}
	rotate := orchestrator.NewActivity(Engine+"/"+OperationRotate, permanently(steps.Rotate), orchestrator.WithRetry(graph), orchestrator.WithTimeout(rotateTimeout))
	probe := orchestrator.NewActivity(activityProbe, permanently(steps.Probe), orchestrator.WithRetry(probing), orchestrator.WithTimeout(time.Minute))
	retire := orchestrator.NewActivity(activityRetire, permanently(steps.Retire), orchestrator.WithRetry(graph), orchestrator.WithTimeout(time.Minute))

	run := func(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (Result, error) {
		in, err := ParseInput(r.Operation, r.Input)
		if err != nil {
			return Result{}, orchestrator.Permanent(err)
		}
		slot := cmp.Or(in.Slot, r.CorrelationID)
		made, err := rotate.Call(ctx, RotateInput{ApplicationID: in.ApplicationID, Slot: slot, JobID: r.CorrelationID, Again: ctx.Execution() - 1}).Await()
		if err != nil {
			return Result{}, fmt.Errorf("rotate the secret of application %s: %w", in.ApplicationID, err)
		}
		valid, err := probe.Call(ctx, ProbeInput{ApplicationID: in.ApplicationID, SecretName: made.SecretName, Version: made.Version}).Await()
		if err != nil {
			return Result{}, fmt.Errorf("wait until secret %s version %s is accepted: %w", made.SecretName, made.Version, err)
		}
		err = publish(ctx, cmp.Or(r.TenantID, engine.PublisherInstance), Rotated{
			ApplicationID: in.ApplicationID, InstanceID: r.InstanceID, Slot: slot,
			SecretName: made.SecretName, Version: made.Version, KeyID: made.KeyID,
			CreatedAtUtc: made.CreatedAtUtc, ExpiresAtUtc: made.ExpiresAtUtc, RetireAtUtc: valid.RetireAtUtc,
		})
		if err != nil {
			return Result{}, err
		}
		// The end of the overlap is a result, and results outlast a failed attempt: the next one does not begin to wait anew.
		if left := valid.RetireAtUtc.Sub(ctx.Now()); left > 0 {
			if err := ctx.Sleep(left); err != nil {
				return Result{}, fmt.Errorf("wait for the end of the overlap of application %s: %w", in.ApplicationID, err)
			}
		}
		_, err = retire.Call(ctx, RetireInput{ApplicationID: in.ApplicationID, Slot: slot, SecretName: made.SecretName, Version: made.Version, KeyID: made.KeyID}).Await()
		if err != nil {
			return Result{}, fmt.Errorf("remove the older passwords of application %s: %w", in.ApplicationID, err)
		}
		return Result{SecretName: made.SecretName, Version: made.Version, KeyID: made.KeyID}, nil
	}

	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Orchestrator: engine.Orchestrate(Engine, run),
		Operations:   []orchestrator.AnyActivity{rotate},
		Activities:   []orchestrator.AnyActivity{probe, retire},
	}
}

// publish tells the consumers, in order for each application, and once for each key.
func publish(ctx *orchestrator.Context, tenant string, event Rotated) error {
	payload, err := json.Marshal(event)
	if err != nil {
		return orchestrator.Permanent(fmt.Errorf("publish %s: %w", EventRotated, err))
	}
	return ctx.Publish(orchestrator.Publication{TenantID: tenant, Type: EventRotated, Payload: payload,
		Key: EventRotated + "/" + event.KeyID, OrderKey: Engine + "/" + event.ApplicationID})
}

// permanently marks the errors of a step that only a person can mend. A missing role is not among them: a new assignment
// takes minutes to arrive; nor is a missing application: a new one takes as long to be seen.
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
