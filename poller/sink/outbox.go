package sink

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/poller"
)

// Outbox adds rows to the outbox, with the Event as payload and its id as idempotency key. All fields are required.
type Outbox struct {
	Target poller.OutboxTarget
	Writer *outbox.Writer
}

var _ poller.Handler = Outbox{}

// Deliver adds a batch: the tenants one after another, and the rows of each in order.
func (o Outbox) Deliver(ctx context.Context, d poller.Delivery) error {
	var tenants []string
	messages := map[string][]outbox.Message{}
	for i, row := range d.Rows {
		tenant, err := column(row, o.Target.TenantColumn, o.Target.Tenant)
		if err != nil {
			return err
		}
		m, err := o.message(eventOf(d.Poller, d.EventIDs[i], row))
		if err != nil {
			return err
		}
		if messages[tenant] == nil {
			tenants = append(tenants, tenant)
		}
		messages[tenant] = append(messages[tenant], m)
	}
	for _, tenant := range tenants {
		if _, err := o.Writer.AddMany(ctx, tenant, messages[tenant]); err != nil {
			return permanentIf(fmt.Errorf("add events of poller %s: %w", d.Poller, err), outbox.ErrInvalid, outbox.ErrPayloadTooLarge)
		}
	}
	return nil
}

func (o Outbox) message(event Event) (outbox.Message, error) {
	payload, err := json.Marshal(event)
	if err != nil {
		return outbox.Message{}, poller.Permanent(fmt.Errorf("row %.256s is no JSON: %w", event.Key, err))
	}
	key, err := uuid.Parse(event.ID)
	if err != nil {
		return outbox.Message{}, fmt.Errorf("event id %s: %w", event.ID, err)
	}
	m := outbox.Message{EventType: o.Target.EventType, Payload: payload, Key: key, CorrelationID: CorrelationID(event.Poller, event.ID)}
	if o.Target.Ordered {
		m.OrderKey = uuid.NewSHA1(uuid.NameSpaceOID, append([]byte(event.Poller+":"), event.Key...)).String()
	}
	return m, nil
}
