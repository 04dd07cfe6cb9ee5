package updatepublisher

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// Sender puts messages into queues; queues.Store does.
type Sender interface {
	Send(ctx context.Context, queue string, body []byte, delay time.Duration) (id string, err error)
}

// Tick sends the message that asks for the evaluation of a slot: the time that the timer was due, not the time at which it
// fired. The same slot gives the same correlation id, so that it is evaluated once, however often it is ticked.
func Tick(ctx context.Context, queues Sender, slot time.Time) error {
	slot = slot.UTC()
	input, err := json.Marshal(Input{Slot: slot})
	if err != nil {
		return fmt.Errorf("ask for the evaluation of %v: %w", slot, err)
	}
	body, err := json.Marshal(engine.Message{Engine: Engine, InstanceID: engine.PublisherInstance, Input: input,
		CorrelationID: engine.DeriveCorrelationID("update-publisher-slot", slot.Format(time.RFC3339Nano))})
	if err == nil {
		_, err = queues.Send(ctx, Queue, body, 0)
	}
	if err != nil {
		return fmt.Errorf("ask for the evaluation of %v: %w", slot, err)
	}
	return nil
}
