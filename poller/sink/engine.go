package sink

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/queues"
)

// sends is the number of messages in flight.
const sends = 16

// Engine sends rows to the queue of an engine, a message each, with the Event as input, or the target's column. Queues
// do not keep order, so neither does it within a batch. All fields are required.
type Engine struct {
	Target poller.EngineTarget
	Queue  string
	Queues queues.Store
	// Claims store inputs that do not fit a message.
	Claims *engine.Claims
}

var _ poller.Handler = Engine{}

// Deliver sends a batch.
func (e Engine) Deliver(ctx context.Context, d poller.Delivery) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sends)
	for i, row := range d.Rows {
		group.Go(func() error { return e.send(ctx, eventOf(d.Poller, d.EventIDs[i], row), row) })
	}
	return group.Wait()
}

func (e Engine) send(ctx context.Context, event Event, row poller.Row) error {
	instance, err := column(row, e.Target.InstanceColumn, e.Target.Instance)
	if err != nil {
		return err
	}
	tenant, err := column(row, e.Target.TenantColumn, e.Target.Tenant)
	if err != nil {
		return err
	}
	input, err := e.input(event, row)
	if err != nil {
		return err
	}
	body, err := e.Claims.Pack(ctx, engine.Message{CorrelationID: CorrelationID(event.Poller, event.ID), Engine: e.Target.Engine,
		Operation: e.Target.Operation, InstanceID: instance, TenantID: tenant, Input: input})
	if err != nil {
		return permanentIf(fmt.Errorf("message of row %.256s: %w", row.Key, err), blobs.ErrTooLarge, engine.ErrIDTooLong, payload.ErrTooDeep)
	}
	if _, err := e.Queues.Send(ctx, e.Queue, body, 0); err != nil {
		return permanentIf(fmt.Errorf("send row %.256s: %w", row.Key, err), queues.ErrTooLarge)
	}
	return nil
}

// input returns the engine's input for a row.
func (e Engine) input(event Event, row poller.Row) (input json.RawMessage, err error) {
	name := e.Target.InputColumn
	if name == "" {
		input, err = json.Marshal(event)
	} else if input, err = cell(row, name); err != nil {
		return nil, err
	}
	if err != nil || len(input) > 0 && !json.Valid(input) {
		return nil, poller.Permanent(fmt.Errorf("row %.256s: its input is no JSON", row.Key))
	}
	return input, nil
}
