package api

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// historyItem is an entry in a list (standard, section 5).
type historyItem struct {
	Engine        string        `json:"engine"`
	RowKey        string        `json:"rowKey"`
	InstanceID    string        `json:"instanceId"`
	Operation     string        `json:"operation"`
	Status        engine.Status `json:"status"`
	DurationMs    int64         `json:"durationMs"`
	CreatedAtUtc  time.Time     `json:"createdAtUtc"`
	CorrelationID string        `json:"correlationId"`
	// SupersededBy is the row key of the entry of the run's later success.
	SupersededBy string `json:"supersededBy,omitempty"`
}

// historyDetail is one entry.
type historyDetail struct {
	historyItem
	Input  json.RawMessage `json:"input,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func (a *api) listHistory(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "engine", "instanceId", "status", "operation", "correlationId", "superseded", "fromDate", "toDate",
		"limit", "continuationToken")
	names, err := a.names(ctx, q.values.Get("engine"))
	if err != nil {
		return reply{}, err
	}
	from, to := q.period()
	f := engine.HistoryFilter{
		Engines:       q.engines(names),
		InstanceID:    q.text("instanceId", engine.MaxInstanceIDLength),
		Status:        engine.Status(q.oneOf("status", string(engine.StatusSucceeded), string(engine.StatusFailed))),
		Open:          q.oneOf("superseded", "true", "false") == "false",
		Operation:     q.text("operation", engine.MaxInstanceIDLength),
		CorrelationID: q.text("correlationId", engine.MaxIDLength),
		From:          from,
		To:            to,
		Limit:         q.limit(),
		Token:         q.values.Get("continuationToken"),
		TenantID:      r.principal().Scope,
	}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	page, err := a.history.List(ctx, f)
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(page.Entries, page.Token, historyItemOf)}, nil
}

func (a *api) getHistory(ctx context.Context, r *request) (reply, error) {
	engineName, rowKey, err := a.row(ctx, r)
	if err != nil {
		return reply{}, err
	}
	e, err := a.history.Get(ctx, engineName, rowKey)
	if errors.Is(err, engine.ErrNotFound) || err == nil && !r.principal().Sees(e.TenantID) {
		return reply{}, notFound("The engine %s has no history entry of this row key.", engineName)
	}
	if err != nil {
		return reply{}, err
	}
	return reply{data: historyDetail{historyItemOf(e), e.Input, e.Output, e.Error}, etag: e.ETag}, nil
}

func historyItemOf(e engine.Entry) historyItem {
	return historyItem{
		Engine:        e.Engine,
		RowKey:        e.RowKey,
		InstanceID:    e.InstanceID,
		Operation:     e.Operation,
		Status:        e.Status,
		DurationMs:    e.DurationMs,
		CreatedAtUtc:  e.CreatedAtUtc,
		CorrelationID: e.CorrelationID,
		SupersededBy:  e.SupersededBy,
	}
}
