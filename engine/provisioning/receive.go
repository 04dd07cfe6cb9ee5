package provisioning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/services/marketplace"
)

// Verdict is the result of checking a notice.
type Verdict string

// The verdicts.
const (
	// Act: it is confirmed, and has to be carried out.
	Act Verdict = "act"
	// Superseded: a newer change has overtaken it; nothing is done.
	Superseded Verdict = "superseded"
	// Decline: it is confirmed, and the publisher does not want it.
	Decline Verdict = "decline"
)

// Received is a notice that the service itself has confirmed: no field is taken from the sender alone.
type Received struct {
	Verdict Verdict `json:"verdict"`
	// Reason is the reason why the verdict is not Act.
	Reason     string `json:"reason,omitempty"`
	Source     string `json:"source"`
	Action     Action `json:"action"`
	InstanceID string `json:"instanceId"`
	TenantID   string `json:"tenantId"`
	PlanID     string `json:"planId,omitempty"`
	Quantity   string `json:"quantity,omitempty"`
	// OperationID is the marketplace operation, "" for none.
	OperationID string `json:"operationId,omitempty"`
	// Waits means that the operation waits for an acknowledgement, Activate that the subscription waits for its
	// activation.
	Waits    bool      `json:"waits,omitempty"`
	Activate bool      `json:"activate,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// BootstrapDeadline is the time that the instance has, as a Go duration.
	BootstrapDeadline time.Duration `json:"bootstrapDeadline"`
}

// Receive checks a notice with the service. Errors are ErrNotice and ErrForged, which no retry can fix, ErrTooEarly,
// and those of marketplace.
func (s *Steps) Receive(ctx context.Context, n Notice) (Received, error) {
	r, err := ruleOf(n.Action)
	if err != nil {
		return Received{}, fmt.Errorf("%w: %w", ErrNotice, err)
	}
	out := Received{Verdict: Act, Source: n.Source, Action: r.action, InstanceID: n.InstanceID(), TenantID: engine.PublisherInstance,
		At: n.At, BootstrapDeadline: s.config.BootstrapDeadline}
	ask := s.receiveWebhook
	if n.Source == SourceManagedApp {
		ask = s.receiveNotification
	}
	if err := ask(ctx, n, r, &out); err != nil {
		return Received{}, fmt.Errorf("authorise %s of %s: %w", r.action, out.InstanceID, err)
	}
	return out, nil
}

func (s *Steps) receiveWebhook(ctx context.Context, n Notice, r rule, out *Received) error {
	sub, err := s.config.Marketplace.Subscription(ctx, n.SubscriptionID)
	if err != nil {
		return err
	}
	op, err := s.operation(ctx, n, r, sub)
	if err != nil {
		return err
	}
	if !strings.EqualFold(op.SubscriptionID, n.SubscriptionID) || !strings.EqualFold(op.Action, string(r.action)) {
		return fmt.Errorf("%w: operation %s is %.64q of subscription %.64s", ErrForged, op.ID, op.Action, op.SubscriptionID)
	}
	out.OperationID = op.ID
	if sub.Beneficiary.TenantID != "" {
		out.TenantID = sub.Beneficiary.TenantID
	}
	out.PlanID, out.Quantity = sub.PlanID, string(sub.Quantity)
	if r.action == ChangePlan && op.PlanID != "" {
		out.PlanID = op.PlanID
	}
	if r.action == ChangeQuantity && op.Quantity != "" {
		out.Quantity = string(op.Quantity)
	}
	if !op.TimeStamp.IsZero() {
		out.At = op.TimeStamp.UTC().Truncate(time.Microsecond)
	}
	out.Waits = op.Status == marketplace.OperationInProgress
	out.Activate = r.action == Subscribe && sub.Status == marketplace.PendingFulfillmentStart
	return s.judge(op, sub, r, out)
}

// operation finds the operation of a notice: by its id, then among the waiting ones. The marketplace may know an id
// that is no UUID by another one. The state of the subscription is sufficient proof that it was suspended or ended:
// these wait for no answer.
func (s *Steps) operation(ctx context.Context, n Notice, r rule, sub marketplace.Subscription) (marketplace.Operation, error) {
	if n.OperationID != "" {
		op, err := s.config.Marketplace.Operation(ctx, n.SubscriptionID, n.OperationID)
		if uuid.Validate(n.OperationID) == nil || !errors.Is(err, marketplace.ErrNotFound) && !errors.Is(err, marketplace.ErrInvalid) {
			return op, err
		}
	}
	pending, err := s.config.Marketplace.Pending(ctx, n.SubscriptionID)
	if err != nil {
		return marketplace.Operation{}, err
	}
	for _, op := range pending {
		if strings.EqualFold(op.Action, string(r.action)) {
			return op, nil
		}
	}
	if (r.action == Suspend || r.action == Unsubscribe) && r.holds(string(sub.Status)) {
		return marketplace.Operation{SubscriptionID: n.SubscriptionID, Action: string(r.action), Status: marketplace.OperationSucceeded}, nil
	}
	return marketplace.Operation{}, fmt.Errorf("%w: no operation of this kind waits, and the notice names none", ErrTooEarly)
}

// judge compares the operation with the subscription.
func (s *Steps) judge(op marketplace.Operation, sub marketplace.Subscription, r rule, out *Received) error {
	switch {
	case r.then != bootstrap && (op.Status == marketplace.OperationFailed || op.Status == marketplace.OperationConflict):
		// An instance whose bootstrap failed, which ends the operation, can still be started: the subscription
		// decides.
		out.Verdict, out.Reason = Superseded, fmt.Sprintf("the operation has ended as %s", op.Status)
	case op.Status == marketplace.OperationNotStarted:
		return fmt.Errorf("%w: the operation has not started", ErrTooEarly)
	case sub.Status == marketplace.Unsubscribed && r.action != Unsubscribe:
		out.Verdict, out.Reason = Superseded, "the subscription has ended"
	case !r.holds(string(sub.Status)):
		return fmt.Errorf("%w: the subscription is %.64s", ErrTooEarly, sub.Status)
	case r.action == ChangePlan && len(s.config.Plans) > 0 && !slices.Contains(s.config.Plans, out.PlanID):
		out.Verdict, out.Reason = Decline, fmt.Sprintf("the plan %.64q is not offered", out.PlanID)
	}
	return nil
}

func (s *Steps) receiveNotification(ctx context.Context, n Notice, r rule, out *Received) error {
	app, err := s.config.Marketplace.Application(ctx, n.ApplicationID)
	state := app.Properties.ProvisioningState
	switch {
	case errors.Is(err, marketplace.ErrNotFound):
		state = gone
	case err != nil:
		return err
	}
	if app.Identity.TenantID != "" {
		out.TenantID = app.Identity.TenantID
	}
	switch {
	case r.holds(state):
	case r.then == effect(StateRemoved):
		return fmt.Errorf("%w: the application still is %.64s", ErrTooEarly, state)
	case moving(state) && !r.passing():
		return fmt.Errorf("%w: the application still is %.64s", ErrTooEarly, state)
	default:
		out.Verdict, out.Reason = Superseded, fmt.Sprintf("the application is %.64q", state)
	}
	return nil
}

// moving reports whether an application is in transition to a permanent state, and still exists.
func moving(state string) bool {
	return slices.ContainsFunc([]string{"Accepted", "Created", "Creating", "Running", "Ready", "Updating"}, func(s string) bool { return strings.EqualFold(s, state) })
}

// passing reports whether the action itself is a transition.
func (r rule) passing() bool {
	return r.then == effect(StateProvisioning) || r.then == effect(StateRemoving)
}
