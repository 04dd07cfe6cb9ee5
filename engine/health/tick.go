package health

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
)

// Instances lists the registry; *registry.Registry implements it.
type Instances interface {
	List(ctx context.Context, limit int, next string) (registry.Page, error)
}

// Every returns the schedule of checks: of every instance in the registry, at the times of an NCRONTAB expression. A
// slot is checked once, however often its messages are sent: the same slot has the same correlation ids.
func Every(cron string, instances Instances) engine.Schedule {
	return engine.Schedule{Cron: cron, Items: engine.PagedItems(func(ctx context.Context, next string) (engine.ItemPage, error) {
		page, err := instances.List(ctx, 0, next)
		if err != nil {
			return engine.ItemPage{}, fmt.Errorf("list the instances to check: %w", err)
		}
		items := make([]engine.Item, 0, len(page.Instances))
		for _, i := range page.Instances {
			if i.InstanceID != engine.PublisherInstance { // which has no components
				items = append(items, engine.Item{Name: i.InstanceID, Message: checkOf(i.InstanceID, i.TenantID)})
			}
		}
		return engine.ItemPage{Items: items, Next: page.Next}, nil
	})}
}

// checkOf returns the message that starts the check of an instance.
func checkOf(instanceID, tenantID string) func(slot time.Time) (engine.Message, error) {
	return func(slot time.Time) (engine.Message, error) {
		input, err := json.Marshal(Input{Slot: slot})
		return engine.Message{InstanceID: instanceID, TenantID: tenantID, Input: input,
			CorrelationID: engine.ScheduleCorrelationID("health-slot", instanceID, slot.Format(time.RFC3339Nano))}, err
	}
}
