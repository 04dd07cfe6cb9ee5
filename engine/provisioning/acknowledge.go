package provisioning

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/services/marketplace"
)

// AcknowledgeInput is the outcome of an operation.
type AcknowledgeInput struct {
	SubscriptionID string `json:"subscriptionId"`
	OperationID    string `json:"operationId,omitempty"`
	PlanID         string `json:"planId,omitempty"`
	Quantity       string `json:"quantity,omitempty"`
	Succeeded      bool   `json:"succeeded"`
	// Waits and Activate are those of Received.
	Waits    bool `json:"waits,omitempty"`
	Activate bool `json:"activate,omitempty"`
}

// Acknowledged is the marketplace's result.
type Acknowledged struct {
	// Status is the status of the operation, "" when none waited.
	Status marketplace.OperationStatus `json:"status,omitempty"`
	// Activated means that the subscription's billing has begun.
	Activated bool `json:"activated,omitempty"`
}

// Acknowledge reports the outcome of an operation to the marketplace, and activates a subscription that waits for it.
// A concluded operation stays unchanged: the marketplace took it as accepted after ten seconds, or this is a
// repetition. Errors are those of marketplace.
func (s *Steps) Acknowledge(ctx context.Context, in AcknowledgeInput) (Acknowledged, error) {
	var out Acknowledged
	quantity := marketplace.Quantity(in.Quantity)
	if in.Activate && in.Succeeded {
		if err := s.config.Marketplace.Activate(ctx, in.SubscriptionID, in.PlanID, quantity); err != nil {
			return Acknowledged{}, err
		}
		out.Activated = true
	}
	if !in.Waits {
		return out, nil
	}
	a := marketplace.Acknowledgement{PlanID: in.PlanID, Quantity: quantity, Status: marketplace.Failure}
	out.Status = marketplace.OperationFailed
	if in.Succeeded {
		a.Status, out.Status = marketplace.Success, marketplace.OperationSucceeded
	}
	err := s.config.Marketplace.Acknowledge(ctx, in.SubscriptionID, in.OperationID, a)
	if !errors.Is(err, marketplace.ErrConflict) {
		return out, err
	}
	op, err := s.config.Marketplace.Operation(ctx, in.SubscriptionID, in.OperationID)
	if err != nil {
		return Acknowledged{}, fmt.Errorf("see how the operation was concluded: %w", err)
	}
	out.Status = op.Status
	return out, nil
}
