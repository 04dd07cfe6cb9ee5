package health

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
)

// Instances lists the registry; *registry.Registry does.
type Instances interface {
	List(ctx context.Context, limit int, next string) (registry.Page, error)
}

// Every is the schedule of checks: of every instance in the registry, at the times of an NCRONTAB expression. A slot is checked
// once, however often its messages are sent: the same slot gives the same correlation ids.
func Every(cron string, instances Instances) engine.Schedule {
	return engine.Schedule{Cron: cron, Messages: func(ctx context.Context, slot time.Time) ([]engine.Message, error) {
		input, err := json.Marshal(Input{Slot: slot})
		if err != nil {
			return nil, err
		}
		var all []engine.Message
		for next, more := "", true; more; more = next != "" {
			page, err := instances.List(ctx, 0, next)
			if err != nil {
				return all, fmt.Errorf("list the instances to check: %w", err)
			}
			for _, i := range page.Instances {
				all = append(all, engine.Message{InstanceID: i.InstanceID, TenantID: i.TenantID, Input: input,
					CorrelationID: engine.DeriveCorrelationID("health-slot", i.InstanceID, slot.Format(time.RFC3339Nano))})
			}
			next = page.Next
		}
		return all, nil
	}}
}
