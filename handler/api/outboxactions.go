package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/outbox"
)

// acted is the result of an action.
type acted struct {
	ID       string        `json:"id"`
	TenantID string        `json:"tenantId"`
	Action   outbox.Action `json:"action"`
}

// acts returns the endpoint of an action on one message. Its body is optional, and has no members.
func (a *api) acts(action outbox.Action) endpoint {
	return func(ctx context.Context, r *request) (reply, error) {
		tenant, id, err := a.message(r)
		if err == nil {
			err = r.decode(&struct{}{})
		}
		if err != nil {
			return reply{}, err
		}
		record, err := a.outbox.Get(ctx, tenant, id)
		if err != nil {
			return reply{}, err
		}
		if err := r.call.Begin(ctx, access.Change{Action: string(action), Target: "outbox/" + tenant + "/" + id, Tenant: tenant, Before: string(record.Status)}); err != nil {
			return reply{}, err
		}
		if err := a.outbox.Act(ctx, action, tenant, id, outbox.Decision{By: r.by()}); err != nil {
			return reply{}, err
		}
		r.after = string(outbox.StatusPending)
		if action == outbox.ActionSkip {
			r.after = string(outbox.StatusSkipped)
		}
		return reply{data: acted{id, tenant, action}}, nil
	}
}

// selection is the body of a replay by filter: the parameters of the list, of which status is required.
type selection struct {
	Status    string `json:"status"`
	Tenant    string `json:"tenant"`
	EventType string `json:"eventType"`
	// CorrelationID is that of the run that sent them.
	CorrelationID string `json:"correlationId"`
	FromDate      string `json:"fromDate"`
	ToDate        string `json:"toDate"`
}

// replayMany starts an operation. The header Idempotency-Key makes repeated requests one operation.
func (a *api) replayMany(ctx context.Context, r *request) (reply, error) {
	var s selection
	if err := r.decode(&s); err != nil {
		return reply{}, err
	}
	q := &query{values: url.Values{
		"status": {s.Status}, "tenant": {s.Tenant}, "eventType": {s.EventType}, "correlationId": {s.CorrelationID}, "fromDate": {s.FromDate}, "toDate": {s.ToDate},
	}}
	f := outboxFilter(q)
	if s.Status == "" {
		q.problem("status", "Say which messages are meant: there is no default for it.")
	}
	return a.operate(ctx, r, q, bulk.OutboxKind, bulk.Request{
		Action: string(outbox.ActionReplay), Status: string(f.Status), Tenant: f.TenantID, EventType: f.EventType, CorrelationID: f.CorrelationID, From: f.CreatedFrom, To: f.CreatedTo,
	})
}

// accepted returns the answer to a request whose operation continues in the background.
func accepted(op bulk.Operation) reply {
	rep := running(op)
	rep.status = http.StatusAccepted
	rep.header["Location"] = rep.header["Operation-Location"] // the standard header, next to that of Azure
	return rep
}
