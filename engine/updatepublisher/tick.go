package updatepublisher

import (
	"context"
	"encoding/json"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// Every returns the schedule of evaluations, at the times of an NCRONTAB expression. A slot is evaluated once,
// however often its message is sent: the same slot has the same correlation id.
func Every(cron string) engine.Schedule {
	return engine.Schedule{Cron: cron, Messages: func(_ context.Context, slot time.Time) ([]engine.Message, error) {
		input, err := json.Marshal(Input{Slot: slot})
		return []engine.Message{{InstanceID: engine.PublisherInstance, Input: input,
			CorrelationID: engine.ScheduleCorrelationID("update-publisher-slot", slot.Format(time.RFC3339Nano))}}, err
	}}
}
