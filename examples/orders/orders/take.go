package orders

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// EventShipped is the type of the event about a shipment.
const EventShipped = "orders.shipped"

// run is the engine's orchestrator. It reads like a program that runs once from top to bottom, but it may take weeks,
// across many processes.
func (s *engineSteps) run(ctx *orchestrator.Context, r engine.Request[Input]) (Result, error) {
	if r.Operation == OperationClose {
		return s.closeDay(ctx, r)
	}
	order, err := orderOf(r)
	if err != nil {
		return Result{}, orchestrator.Permanent(err)
	}
	terms, err := s.recordedTerms(ctx)
	if err != nil {
		return Result{}, err
	}
	state, err := s.prepare(ctx, r.TenantID, order, terms)
	if err != nil || state != "" {
		// The order is not to be shipped. Its effects are undone, for any reason: a failure, a refusal, or a canceled run.
		return Result{State: state}, errors.Join(err, orchestrator.Undo(ctx))
	}
	return s.complete(ctx, r, order)
}

// recordedTerms returns the terms of the run. They come from settings, which may change while orders are running, so
// the run records its initial ones. An orchestrator that read the settings itself would decide differently when it is
// replayed.
func (s *engineSteps) recordedTerms(ctx *orchestrator.Context) (Terms, error) {
	return orchestrator.SideEffect(ctx, "terms", func() Terms { return s.terms })
}

// prepare does all that can be undone. The state is "" when the order is to be shipped, and otherwise the reason why
// not.
func (s *engineSteps) prepare(ctx *orchestrator.Context, tenant string, order Order, terms Terms) (State, error) {
	if err := s.reserveLines(ctx, order); err != nil {
		return "", err
	}
	if order.worth() > terms.Limit {
		if approved, err := s.approve(ctx, tenant, order, terms); err != nil || !approved {
			return Refused, err
		}
	}
	if paid, err := s.pay(ctx, order, terms); err != nil || !paid {
		return Unpaid, err
	}
	// A durable timer: it costs nothing while it runs, and survives everything that the run survives.
	if err := ctx.Sleep(terms.Grace); err != nil {
		return "", fmt.Errorf("wait until the grace of order %s is over: %w", order.ID, err)
	}
	return "", nil
}

// complete does the irreversible part. When it fails, nothing is undone: the next attempt continues here.
func (s *engineSteps) complete(ctx *orchestrator.Context, r engine.Request[Input], order Order) (Result, error) {
	parcel, err := s.ship.Call(ctx, order).Await()
	if err != nil {
		return Result{}, fmt.Errorf("ship order %s: %w", order.ID, err)
	}
	payload, err := json.Marshal(parcel)
	if err != nil {
		return Result{}, orchestrator.Permanent(fmt.Errorf("tell of the shipment of order %s: %w", order.ID, err))
	}
	// The event leaves if and only if this round of the run is committed.
	err = ctx.Publish(orchestrator.Publication{TenantID: tenantOf(r), Type: EventShipped, Payload: payload, OrderKey: engine.OrderKey(order.ID)})
	return Result{State: Shipped, Label: parcel.Label}, err
}

// tenantOf returns the tenant of an order. An order without one is the publisher's.
func tenantOf(r engine.Request[Input]) string { return cmp.Or(r.TenantID, engine.PublisherInstance) }
