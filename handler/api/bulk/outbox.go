package bulk

import (
	"context"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/outbox"
)

// OutboxKind is the kind of operations on messages of the outbox; their actions are those of the package outbox.
const OutboxKind = "outbox-bulk"

// Actor works on one slice of an outbox; *outbox.Admin is one.
type Actor interface {
	Bulk(ctx context.Context, action outbox.Action, f outbox.Filter, by string) (outbox.Progress, error)
}

// Outbox returns the kind OutboxKind.
func Outbox(a Actor) Kind {
	return Kind{Name: OutboxKind, Work: func(ctx context.Context, s Slice) (Result, error) {
		p, err := a.Bulk(ctx, outbox.Action(s.Action), outbox.Filter{
			Status: outbox.Status(s.Status), TenantID: s.Tenant, EventType: s.EventType, CorrelationID: s.CorrelationID, CreatedFrom: s.From, CreatedTo: s.To,
			Limit: s.Limit, Continuation: s.Continuation,
		}, s.By)
		if errors.Is(err, outbox.ErrInvalid) || errors.Is(err, outbox.ErrToken) {
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return Result{Done: p.Done, PassedOver: p.PassedOver, Continuation: p.Continuation}, err
	}}
}
