package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/marketplace"
)

// Result is the result of a run.
type Result struct {
	InstanceID string  `json:"instanceId"`
	Action     Action  `json:"action"`
	Verdict    Verdict `json:"verdict"`
	// Reason is the reason why the verdict is not Act.
	Reason string `json:"reason,omitempty"`
	// State is the state of the instance in the registry.
	State State `json:"state,omitempty"`
	// Acknowledged is the marketplace's status of the operation, "" when it waited for no answer.
	Acknowledged marketplace.OperationStatus `json:"acknowledged,omitempty"`
}

// Command is the payload of the events CommandBootstrap and CommandChanged. An instance answers the first with the
// event named in it, raised on the orchestration named in it.
type Command struct {
	InstanceID    string `json:"instanceId"`
	Action        Action `json:"action"`
	State         State  `json:"state"`
	PlanID        string `json:"planId,omitempty"`
	Quantity      string `json:"quantity,omitempty"`
	CorrelationID string `json:"correlationId"`
	Orchestration string `json:"orchestration,omitempty"`
	Event         string `json:"event,omitempty"`
}

// activities are the steps as the orchestrator calls them.
type activities struct {
	receive     *orchestrator.Activity[Notice, Received]
	register    *orchestrator.Activity[RegisterInput, Registered]
	complete    *orchestrator.Activity[CompleteInput, Registered]
	acknowledge *orchestrator.Activity[AcknowledgeInput, Acknowledged]
}

// Definition returns the engine over the steps.
func Definition(steps *Steps) engine.Definition {
	retry := orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 3, FirstInterval: time.Second, MaxInterval: 10 * time.Second, Jitter: 0.5,
		Retryable: func(err error) bool { return !isLocked(err) }})
	locked := orchestrator.WithError[*LockedError]()
	timeout := orchestrator.WithTimeout(time.Minute)
	a := activities{
		receive:     orchestrator.NewActivity(OperationReceived, permanently(steps.Receive), retry, timeout),
		register:    orchestrator.NewActivity(OperationRegistered, permanently(steps.Register), retry, timeout, locked),
		complete:    orchestrator.NewActivity(OperationBootstrapped, permanently(steps.Complete), retry, timeout, locked),
		acknowledge: orchestrator.NewActivity(Engine+"/acknowledge", permanently(steps.Acknowledge), retry, timeout),
	}
	return engine.Definition{
		Name:         Engine,
		Queue:        Queue,
		Adapt:        Adapt,
		Orchestrator: engine.Orchestrate(Engine, a.run),
		Operations:   []orchestrator.AnyActivity{a.receive, a.register, a.complete},
		Activities:   []orchestrator.AnyActivity{a.acknowledge},
	}
}

func (a activities) run(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (Result, error) {
	if r.Operation != "" && r.Operation != OperationReceived {
		return Result{}, orchestrator.Permanent(fmt.Errorf("%w: the operation %.64q cannot be asked for", ErrNotice, r.Operation))
	}
	notice, err := ParseNotice(r.Input)
	if err != nil {
		return Result{}, orchestrator.Permanent(err)
	}
	seen, err := a.receive.Call(ctx, notice).Await()
	if err != nil {
		return Result{}, err // the operation is uncertain, so it gets no answer
	}
	result := Result{InstanceID: seen.InstanceID, Action: seen.Action, Verdict: seen.Verdict, Reason: seen.Reason}
	switch seen.Verdict {
	case Superseded:
		return result, nil
	case Decline:
		return a.decline(ctx, seen, result)
	default:
		return a.act(ctx, r.CorrelationID, seen, result)
	}
}

// act carries out the notice and answers the marketplace. It answers with a failure only when no attempt can succeed
// any longer: after a cancellation none follows.
func (a activities) act(ctx *orchestrator.Context, job string, seen Received, result Result) (Result, error) {
	registered, err := a.provision(ctx, job, seen)
	if _, canceled := ctx.Canceled(); err != nil && !canceled && !orchestrator.IsPermanent(err) {
		return result, err
	}
	answer, answered := a.answer(orchestrator.WithoutCancel(ctx), seen, err == nil)
	if err := errors.Join(err, answered); err != nil {
		return result, err
	}
	if registered.Superseded {
		result.Verdict, result.Reason = Superseded, "a newer notice has been applied, or there is no such instance"
	}
	result.State, result.Acknowledged = registered.State, answer.Status
	return result, nil
}

// decline answers the marketplace with a failure, which must arrive before the marketplace takes silence for consent.
func (a activities) decline(ctx *orchestrator.Context, seen Received, result Result) (Result, error) {
	answer, err := a.answer(ctx, seen, false)
	switch {
	case err != nil:
		return result, err
	case answer.Status != marketplace.OperationFailed:
		return result, orchestrator.Permanent(fmt.Errorf("%w: %s of %s, %s", ErrDeclined, seen.Action, seen.InstanceID, seen.Reason))
	}
	result.Acknowledged = answer.Status
	return result, nil
}

// answer acknowledges the operation, if it waits for an answer.
func (a activities) answer(ctx *orchestrator.Context, seen Received, succeeded bool) (Acknowledged, error) {
	if !seen.Waits && !seen.Activate {
		return Acknowledged{}, nil
	}
	return a.acknowledge.Call(ctx, AcknowledgeInput{SubscriptionID: seen.InstanceID, OperationID: seen.OperationID, PlanID: seen.PlanID,
		Quantity: seen.Quantity, Succeeded: succeeded, Waits: seen.Waits, Activate: seen.Activate}).Await()
}

// provision registers the instance, notifies it, and waits for its bootstrap if needed.
func (a activities) provision(ctx *orchestrator.Context, job string, seen Received) (Registered, error) {
	registered, err := unlocked(ctx, a.register, RegisterInput{InstanceID: seen.InstanceID, TenantID: seen.TenantID, Source: seen.Source, Action: seen.Action,
		PlanID: seen.PlanID, Quantity: seen.Quantity, At: seen.At, JobID: job})
	if err != nil || registered.Superseded {
		return registered, err
	}
	rule, err := ruleOf(seen.Action)
	if err != nil {
		return registered, orchestrator.Permanent(err)
	}
	command := Command{InstanceID: seen.InstanceID, Action: seen.Action, State: registered.State, PlanID: seen.PlanID, Quantity: seen.Quantity, CorrelationID: job}
	if rule.then != bootstrap || registered.Kept {
		return registered, tell(ctx, seen.TenantID, CommandChanged, command)
	}
	command.Orchestration, command.Event = ctx.ID(), EventBootstrapped
	if err := tell(ctx, seen.TenantID, CommandBootstrap, command); err != nil {
		return registered, err
	}
	bootstrap, err := await(ctx, seen.BootstrapDeadline)
	if err != nil {
		return registered, err
	}
	return unlocked(ctx, a.complete, CompleteInput{InstanceID: seen.InstanceID, JobID: job, Bootstrap: bootstrap})
}

// The pauses between two checks of an instance that another job has locked. The pause doubles, and ends when the lock
// expires.
const (
	firstPause   = 30 * time.Second
	longestPause = 5 * time.Minute
)

// unlocked runs a step as soon as no other job has locked the instance: waiting uses up no attempts of the message.
func unlocked[In any](ctx *orchestrator.Context, step *orchestrator.Activity[In, Registered], in In) (Registered, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		out, err := step.Call(ctx, in).Await()
		locked, ok := errors.AsType[*LockedError](err)
		if !ok {
			return out, err
		}
		if err := ctx.Sleep(min(pause, max(time.Second, locked.Until.Sub(ctx.Now())))); err != nil {
			return out, err
		}
	}
}

func isLocked(err error) bool {
	_, ok := errors.AsType[*LockedError](err)
	return ok
}

// tell publishes a command. The commands of one instance keep their order.
func tell(ctx *orchestrator.Context, tenant, kind string, c Command) error {
	payload, err := json.Marshal(c)
	if err != nil {
		return orchestrator.Permanent(err)
	}
	return ctx.Publish(orchestrator.Publication{TenantID: tenant, Type: kind, Payload: payload, OrderKey: engine.OrderKey(c.InstanceID)})
}

// await waits for the answer of the instance. Silence is a failed bootstrap.
func await(ctx *orchestrator.Context, deadline time.Duration) (Bootstrap, error) {
	word, late := orchestrator.Event[Bootstrap](ctx, EventBootstrapped), orchestrator.Timer(ctx, deadline)
	if orchestrator.Any(ctx, word, late) == 1 {
		if _, err := late.Await(); err != nil {
			return Bootstrap{}, err
		}
		return Bootstrap{Status: "Failed", Error: fmt.Sprintf("no word from the instance within %v", deadline)}, nil
	}
	bootstrap, err := word.Await()
	if errors.Is(err, orchestrator.ErrCanceled) {
		return Bootstrap{}, err
	}
	if err != nil {
		return Bootstrap{}, orchestrator.Permanent(fmt.Errorf("the event %s cannot be read: %w", EventBootstrapped, err))
	}
	return bootstrap.bounded(), nil
}

// permanently marks the errors of a step that only an operator can fix.
func permanently[In, Out any](step func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		out, err := step(ctx, in)
		for _, hopeless := range []error{ErrNotice, ErrForged, ErrBootstrap, marketplace.ErrInvalid} {
			if errors.Is(err, hopeless) {
				return out, orchestrator.Permanent(err)
			}
		}
		return out, err
	}
}
