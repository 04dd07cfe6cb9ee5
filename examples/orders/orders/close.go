package orders

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// EventClosed is the type of the event with the total of a day.
const EventClosed = "orders.day-closed"

// Total is the shipments of a day.
type Total struct {
	Day    string `json:"day"`
	Orders int    `json:"orders"`
	Cents  int    `json:"cents"`
}

// closeTheDay makes the message of the schedule. It uses the time of the occurrence, not the clock: a late or repeated
// occurrence makes the same message, and the same message is a duplicate.
func closeTheDay(_ context.Context, slot time.Time) ([]engine.Message, error) {
	input, err := json.Marshal(Input{Day: slot.Format(time.DateOnly)})
	return []engine.Message{{Operation: OperationClose, Input: input}}, err
}

// closeDay adds up a day, and publishes the total.
func (s *engineSteps) closeDay(ctx *orchestrator.Context, r engine.Request[Input]) (Result, error) {
	if _, err := time.Parse(time.DateOnly, r.Input.Day); err != nil {
		return Result{}, orchestrator.Permanent(fmt.Errorf("%w: the day to close is %.20q: write it as 2026-04-07", ErrInput, r.Input.Day))
	}
	total, err := s.total.Call(ctx, r.Input.Day).Await()
	if err != nil {
		return Result{}, fmt.Errorf("close the day %s: %w", r.Input.Day, err)
	}
	payload, err := json.Marshal(total)
	if err != nil {
		return Result{}, orchestrator.Permanent(fmt.Errorf("tell of the day %s: %w", r.Input.Day, err))
	}
	return Result{State: Closed}, ctx.Publish(orchestrator.Publication{TenantID: tenantOf(r), Type: EventClosed, Payload: payload})
}
