package api

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/outbox"
)

// deepestPage bounds the messages that a page by number may skip: each of them is read. Continuation tokens have no
// limit.
const deepestPage = 10_000

// outboxItem is a message in a list (outbox document, "API (Optional Admin)"), with its link.
type outboxItem struct {
	ID               string        `json:"id"`
	TenantID         string        `json:"tenantId"`
	EventType        string        `json:"eventType"`
	Status           outbox.Status `json:"status"`
	CreatedAt        time.Time     `json:"createdAt"`
	RetryCount       int           `json:"retryCount"`
	ProcessedAt      time.Time     `json:"processedAt,omitzero"`
	LastErrorSnippet string        `json:"lastErrorSnippet,omitempty"`
	CorrelationID    string        `json:"correlationId,omitempty"`
}

// outboxDetail is one message. A payload that is no JSON, from an older version, is a string.
type outboxDetail struct {
	outbox.Record
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	Payload        any    `json:"payload,omitempty"`
}

// outboxFilter reads the parameters that select messages, fromDate and toDate by their creation.
func outboxFilter(q *query) outbox.Filter {
	from, to := q.period()
	return outbox.Filter{
		Status: outbox.Status(q.oneOf("status", string(outbox.StatusPending), string(outbox.StatusFailed),
			string(outbox.StatusProcessed), string(outbox.StatusSkipped), string(outbox.StatusDead))),
		TenantID:      q.text("tenant", outbox.MaxIDLength),
		EventType:     q.text("eventType", outbox.MaxIDLength),
		CorrelationID: q.text("correlationId", outbox.MaxIDLength),
		CreatedFrom:   from,
		CreatedTo:     to,
	}
}

func (a *api) listOutbox(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "status", "tenant", "eventType", "correlationId", "fromDate", "toDate", "page", "pageSize", "continuationToken")
	f := outboxFilter(q)
	f.Limit = cmp.Or(q.number("pageSize", outbox.MaxLimit), outbox.DefaultLimit)
	f.Continuation = q.values.Get("continuationToken")
	page := q.number("page", deepestPage)
	skip := (max(page, 1) - 1) * f.Limit
	if skip > deepestPage {
		q.problem("page", "Pages by number end behind %d messages. Use continuationToken.", deepestPage)
	}
	if page != 0 && f.Continuation != "" {
		q.problem("page", "Use either page or continuationToken.")
	}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	if f.TenantID = cmp.Or(f.TenantID, r.principal().Scope); !r.principal().Sees(f.TenantID) {
		return reply{data: listOf[outbox.Record](nil, "", outboxItemOf)}, nil
	}
	found, err := a.behind(ctx, f, skip)
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(found.Records, found.Continuation, outboxItemOf)}, nil
}

// behind returns a page of the outbox after skipping the first selected messages.
func (a *api) behind(ctx context.Context, f outbox.Filter, skip int) (outbox.Page, error) {
	for skip > 0 {
		skipped := f
		skipped.Limit = min(skip, outbox.MaxLimit)
		p, err := a.outbox.List(ctx, skipped)
		if err != nil || p.Continuation == "" {
			return outbox.Page{}, err
		}
		f.Continuation = p.Continuation
		skip -= skipped.Limit
	}
	return a.outbox.List(ctx, f)
}

func (a *api) getOutbox(ctx context.Context, r *request) (reply, error) {
	tenant, id, err := a.message(r)
	if err != nil {
		return reply{}, err
	}
	record, err := a.outbox.Get(ctx, tenant, id)
	if err != nil {
		return reply{}, err
	}
	return reply{data: outboxDetailOf(record)}, nil
}

// snapshot returns the outbox in numbers (outbox document, "Observability / Metrics").
func (a *api) snapshot(ctx context.Context, _ *request) (reply, error) {
	s, err := a.measure(ctx)
	if err != nil {
		return reply{}, err
	}
	return reply{data: s}, nil
}

// message reads the tenant and the id of the path. Another tenant's message does not exist.
func (a *api) message(r *request) (tenant, id string, err error) {
	tenant, ok := r.param("tenant")
	id, okID := r.param("id")
	switch {
	case !ok || !okID:
		return "", "", notFound("There is nothing at this path.")
	case !r.principal().Sees(tenant):
		return "", "", hidden(outboxFailure(outbox.ErrNotFound, a.now()))
	default:
		return tenant, id, nil
	}
}

func outboxItemOf(r outbox.Record) outboxItem {
	return outboxItem{
		ID:               r.ID,
		TenantID:         r.TenantID,
		EventType:        r.EventType,
		Status:           r.Status,
		CreatedAt:        r.CreatedAt,
		RetryCount:       r.RetryCount,
		ProcessedAt:      r.ProcessedAt,
		LastErrorSnippet: r.Error,
		CorrelationID:    r.CorrelationID,
	}
}

func outboxDetailOf(r outbox.Record) outboxDetail {
	d := outboxDetail{Record: r}
	if r.IdempotencyKey != uuid.Nil {
		d.IdempotencyKey = r.IdempotencyKey.String()
	}
	switch {
	case json.Valid(r.Payload):
		d.Payload = redact.JSON(r.Payload)
	case len(r.Payload) > 0:
		d.Payload = redact.Text(string(r.Payload))
	}
	return d
}
