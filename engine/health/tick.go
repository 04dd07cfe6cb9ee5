package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
)

// Instances lists the registry; *registry.Registry does.
type Instances interface {
	List(ctx context.Context, limit int, next string) (registry.Page, error)
}

// Sender puts messages into queues; queues.Store does.
type Sender interface {
	Send(ctx context.Context, queue string, body []byte, delay time.Duration) (id string, err error)
}

// Ticker asks for checks when the timer fires.
type Ticker struct {
	Instances Instances
	Queues    Sender
}

// Tick sends, for every instance in the registry, a message that asks for the check of a slot: the time that the timer
// was due, not the time at which it fired. The same slot gives the same correlation ids, so that it is checked once,
// however often it is ticked. After an error it can be repeated.
func (t Ticker) Tick(ctx context.Context, slot time.Time) error {
	slot = slot.UTC()
	input, err := json.Marshal(Input{Slot: slot})
	if err != nil {
		return fmt.Errorf("tick %v: %w", slot, err)
	}
	var failed []error
	for next, more := "", true; more; more = next != "" {
		page, err := t.Instances.List(ctx, 0, next)
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("tick %v: %w", slot, err))...)
		}
		for _, i := range page.Instances {
			if err := t.send(ctx, i, slot, input); err != nil {
				failed = append(failed, err)
			}
		}
		next = page.Next
	}
	return errors.Join(failed...)
}

func (t Ticker) send(ctx context.Context, i registry.Instance, slot time.Time, input json.RawMessage) error {
	body, err := json.Marshal(engine.Message{Engine: Engine, InstanceID: i.InstanceID, TenantID: i.TenantID, Input: input,
		CorrelationID: engine.DeriveCorrelationID("health-slot", i.InstanceID, slot.Format(time.RFC3339Nano))})
	if err == nil {
		_, err = t.Queues.Send(ctx, Queue, body, 0)
	}
	if err != nil {
		return fmt.Errorf("ask for a check of instance %s: %w", i.InstanceID, err)
	}
	return nil
}
