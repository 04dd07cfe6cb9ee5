package api

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api/bulk"
	"github.com/vibedata/roundhouse/orchestrator"
)

// pollAfter is the polling interval of an operation, in seconds.
const pollAfter = "2"

// operationItem is an operation in an answer.
type operationItem struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Status is one of operationStatuses.
	Status string `json:"status"`
	// CorrelationID is that of the request which started it, and of all its log lines.
	CorrelationID string        `json:"correlationId"`
	Request       bulk.Request  `json:"request"`
	Progress      bulk.Progress `json:"progress"`
	CreatedAt     time.Time     `json:"createdAt"`
	LastUpdatedAt time.Time     `json:"lastUpdatedAt"`
	EndedAt       time.Time     `json:"endedAt,omitzero"`
	Error         *problem      `json:"error,omitempty"`
}

// operate starts an operation on the rows that a filter selects and the caller sees. The header Idempotency-Key makes
// repeated requests one operation.
func (a *api) operate(ctx context.Context, r *request, q *query, kind string, req bulk.Request) (reply, error) {
	key := cmp.Or(q.idempotencyKey(r), RequestKey(r.http.Header))
	if err := q.err(); err != nil {
		return reply{}, err
	}
	if req.Tenant = cmp.Or(req.Tenant, r.principal().Scope); !r.principal().Sees(req.Tenant) {
		return reply{}, hidden(forbidden("The operation is on what belongs to another tenant."))
	}
	if key != "" { // each caller has its own keys
		key = r.principal().ID() + "\n" + key
	}
	req.By = r.by()
	what, err := json.Marshal(req.Summary()) // the operation itself has the rows
	if err != nil {
		return reply{}, err
	}
	if err := r.call.Begin(ctx, access.Change{Action: req.Action, Target: kind, Tenant: req.Tenant, Before: string(what)}); err != nil {
		return reply{}, err
	}
	op, err := a.bulk.Start(ctx, kind, req, key, r.correlationID)
	if err != nil {
		return reply{}, err
	}
	r.after = "operations/" + op.ID
	return accepted(op), nil
}

// listOperations lists operations, the newest first. Callers of a tenant see those on the tenant's data.
func (a *api) listOperations(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "status", "by", "limit", "continuationToken")
	f := bulk.Filter{Statuses: statusesOf(q.oneOf("status", append(operationStatuses(), openOperations)...)), By: q.text("by", maxPrincipal), Tenant: r.principal().Scope}
	limit := cmp.Or(q.limit(), defaultPage)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	fingerprint := fingerprintOf("operations", f)
	place, err := openToken(q.values.Get("continuationToken"), fingerprint)
	if err != nil {
		return reply{}, err
	}
	found, next, err := a.bulk.List(ctx, a.list, f, limit, place)
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(found, sealToken(next, fingerprint), operationItemOf)}, nil
}

func (a *api) getOperation(ctx context.Context, r *request) (reply, error) {
	op, err := a.operation(ctx, r)
	if err != nil {
		return reply{}, err
	}
	return running(op), nil
}

// commandedOperation returns the endpoint of a command to an operation, which takes effect a little later.
func (a *api) commandedOperation(name string, send func(o *bulk.Operations, ctx context.Context, id, reason string) (bulk.Operation, error)) endpoint {
	return func(ctx context.Context, r *request) (reply, error) {
		if err := r.decode(&struct{}{}); err != nil {
			return reply{}, err
		}
		op, err := a.operation(ctx, r)
		if err != nil {
			return reply{}, err
		}
		if err := r.call.Begin(ctx, access.Change{Action: name, Target: "operations/" + op.ID, Tenant: op.Request.Tenant, Before: operationStatus(op.Status)}); err != nil {
			return reply{}, err
		}
		if op, err = send(a.bulk, ctx, op.ID, "requested by "+r.by()); err != nil {
			return reply{}, err
		}
		return accepted(op), nil
	}
}

// operation returns the operation in the path. An undecodable id is unknown, and another tenant's operation does not
// exist.
func (a *api) operation(ctx context.Context, r *request) (bulk.Operation, error) {
	id, _ := r.param("operation")
	op, err := a.bulk.Get(ctx, id)
	if err == nil && !r.principal().Sees(op.Request.Tenant) {
		return bulk.Operation{}, hidden(notFound("There is no such operation."))
	}
	return op, err
}

// running returns an operation, with a polling interval until it has ended.
func running(op bulk.Operation) reply {
	header := map[string]string{"Operation-Location": "/api/operations/" + op.ID}
	if !op.Ended() {
		header["Retry-After"] = pollAfter
	}
	return reply{data: operationItemOf(op), header: header}
}

func operationItemOf(op bulk.Operation) operationItem {
	item := operationItem{
		ID: op.ID, Kind: op.Kind, Status: operationStatus(op.Status), CorrelationID: op.CorrelationID, Request: op.Request, Progress: op.Progress,
		CreatedAt: op.CreatedAt, LastUpdatedAt: op.UpdatedAt, EndedAt: op.EndedAt,
	}
	switch {
	case op.Status == orchestrator.Stalled:
		item.Error = &problem{Code: codeStalled, Message: "The operation cannot go on with the program that is deployed; its orchestration has the reason. It goes on by itself when that is mended."}
	case op.Status == orchestrator.Failed && op.Progress.Returned > 0:
		item.Error = &problem{Code: codeCanary, Message: "What was tried first came back, so the rest was left alone. See why, and start another operation."}
	case op.Status == orchestrator.Failed:
		item.Error = &problem{Code: codeInternal, Message: "The operation gave up. Its log has the reason under its correlation id; start another one for what is left."}
	}
	return item
}

// operationStatus converts the status of an orchestration to that of an operation.
func operationStatus(s orchestrator.Status) string {
	for _, name := range operationStatuses() {
		if slices.Contains(statusesOf(name), s) {
			return name
		}
	}
	return "Running"
}

// operationStatuses returns the statuses of operations.
func operationStatuses() []string {
	return []string{"NotStarted", "Running", "Paused", "Succeeded", "Failed", "Canceled"}
}

// openOperations selects operations that have not ended.
const openOperations = "Open"

// statusesOf returns the orchestration statuses for a status of operations, nil for none.
func statusesOf(operation string) []orchestrator.Status {
	return map[string][]orchestrator.Status{
		"NotStarted":   {orchestrator.Pending},
		"Running":      {orchestrator.Running, orchestrator.Stalled},
		"Paused":       {orchestrator.Suspended},
		"Succeeded":    {orchestrator.Completed},
		"Failed":       {orchestrator.Failed},
		"Canceled":     {orchestrator.Canceled, orchestrator.Terminated},
		openOperations: {orchestrator.Pending, orchestrator.Running, orchestrator.Stalled, orchestrator.Suspended},
	}[operation]
}
