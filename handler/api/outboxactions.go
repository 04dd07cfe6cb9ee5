package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/outbox"
)

// decision says who decided, for the record.
type decision struct {
	By string `json:"by"`
}

// acted tells what was done.
type acted struct {
	ID       string        `json:"id"`
	TenantID string        `json:"tenantId"`
	Action   outbox.Action `json:"action"`
}

func (a *api) retry(ctx context.Context, r *request) (reply, error) {
	return act(r, outbox.ActionRetry, &struct{}{}, func(tenant, id string) error { return a.outbox.Retry(ctx, tenant, id) })
}

func (a *api) skip(ctx context.Context, r *request) (reply, error) {
	var d decision
	return act(r, outbox.ActionSkip, &d, func(tenant, id string) error { return a.outbox.Skip(ctx, tenant, id, d.By) })
}

func (a *api) replay(ctx context.Context, r *request) (reply, error) {
	return act(r, outbox.ActionReplay, &struct{}{}, func(tenant, id string) error { return a.outbox.Replay(ctx, tenant, id) })
}

// act decodes the body, which may be missing, and does something to the message of the path.
func act(r *request, action outbox.Action, body any, do func(tenant, id string) error) (reply, error) {
	tenant, id, err := message(r)
	if err == nil {
		err = r.decode(body)
	}
	if err == nil {
		err = do(tenant, id)
	}
	if err != nil {
		return reply{}, err
	}
	return reply{data: acted{id, tenant, action}}, nil
}

// selection is the body of a replay by filter: the parameters of the list, of which status has to be there.
type selection struct {
	Status    string `json:"status"`
	Tenant    string `json:"tenant"`
	EventType string `json:"eventType"`
	FromDate  string `json:"fromDate"`
	ToDate    string `json:"toDate"`
	decision
}

// replayMany starts an operation. The header Idempotency-Key makes it one operation however often it is sent.
func (a *api) replayMany(ctx context.Context, r *request) (reply, error) {
	var s selection
	if err := r.decode(&s); err != nil {
		return reply{}, err
	}
	q := &query{values: url.Values{
		"status": {s.Status}, "tenant": {s.Tenant}, "eventType": {s.EventType}, "fromDate": {s.FromDate}, "toDate": {s.ToDate}, "by": {s.By},
	}}
	f := outboxFilter(q)
	by := q.text("by", outbox.MaxIDLength)
	if s.Status == "" {
		q.problem("status", "Say which messages are meant: there is no default for it.")
	}
	key := q.idempotencyKey(r)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	op, err := a.bulk.Start(ctx, bulk.OutboxKind, bulk.Request{
		Action: string(outbox.ActionReplay), Status: string(f.Status), Tenant: f.TenantID, EventType: f.EventType, From: f.CreatedFrom, To: f.CreatedTo, By: by,
	}, key, r.correlationID)
	if err != nil {
		return reply{}, err
	}
	return accepted(op), nil
}

// accepted is the answer to a request that goes on behind it.
func accepted(op bulk.Operation) reply {
	rep := running(op)
	rep.status = http.StatusAccepted
	return rep
}
