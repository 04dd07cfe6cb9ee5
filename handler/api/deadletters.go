package api

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/redact"
)

// deadLetterItem is a dead letter in a list (standard, section 3).
type deadLetterItem struct {
	Engine            string                  `json:"engine"`
	RowKey            string                  `json:"rowKey"`
	InstanceID        string                  `json:"instanceId"`
	OriginalQueue     string                  `json:"originalQueue"`
	ErrorMessage      string                  `json:"errorMessage"`
	DequeueCount      int                     `json:"dequeueCount"`
	Status            engine.DeadLetterStatus `json:"status"`
	FirstFailureAtUtc time.Time               `json:"firstFailureAtUtc"`
	LastFailureAtUtc  time.Time               `json:"lastFailureAtUtc"`
	CorrelationID     string                  `json:"correlationId"`
	// ParentRowKey is the dead letter whose retry left this one, RetryCount the number of retries.
	ParentRowKey string `json:"parentRowKey,omitempty"`
	RetryCount   int    `json:"retryCount,omitempty"`
	// Assignee is the id of the assignee.
	Assignee     string    `json:"assignee,omitempty"`
	AssigneeName string    `json:"assigneeName,omitempty"`
	AssignedAt   time.Time `json:"assignedAtUtc,omitzero"`
}

// deadLetterDetail is one dead letter. The original message is text when it can be, else base64.
type deadLetterDetail struct {
	deadLetterItem
	OriginalMessage         string        `json:"originalMessage"`
	OriginalMessageEncoding string        `json:"originalMessageEncoding,omitempty"`
	MessageID               string        `json:"messageId,omitempty"`
	InsertedAtUtc           time.Time     `json:"insertedAtUtc,omitzero"`
	DetectedReason          engine.Reason `json:"detectedReason,omitempty"`
	Node                    string        `json:"node,omitempty"`
	ErrorSignature          string        `json:"errorSignature,omitempty"`
	ResolutionNotes         string        `json:"resolutionNotes,omitempty"`
	ResolvedAtUtc           time.Time     `json:"resolvedAtUtc,omitzero"`
	ResolvedBy              string        `json:"resolvedBy,omitempty"`
	ExpiredAtUtc            time.Time     `json:"expiredAtUtc,omitzero"`
	RetryID                 string        `json:"retryId,omitempty"`
	RetriedAtUtc            time.Time     `json:"retriedAtUtc,omitzero"`
	RetriedBy               string        `json:"retriedBy,omitempty"`
	RetryMessageID          string        `json:"retryMessageId,omitempty"`
	// SentMessage is the message of a retry that replaced the original one.
	SentMessage string     `json:"sentMessage,omitempty"`
	Notes       []noteItem `json:"notes,omitempty"`
}

func (a *api) listDeadLetters(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "engine", "status", "instanceId", "correlationId", "errorSignature", "assignee", "fromDate",
		"toDate", "limit", "continuationToken")
	names, err := a.names(ctx, q.values.Get("engine"))
	if err != nil {
		return reply{}, err
	}
	f := letterFilter(r, q, names)
	f.ErrorSignature = q.text("errorSignature", maxSignature)
	q.assignee(r, &f)
	f.Limit, f.Token = q.limit(), q.values.Get("continuationToken")
	if err := q.err(); err != nil {
		return reply{}, err
	}
	page, err := a.letters.List(ctx, f)
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(page.DeadLetters, page.Token, deadLetterItemOf)}, nil
}

// letterFilter reads the parameters that select dead letters of the named engines.
func letterFilter(r *request, q *query, names []string) engine.DeadLetterFilter {
	from, to := q.period()
	return engine.DeadLetterFilter{
		Engines:  q.engines(names),
		TenantID: r.principal().Scope,
		Status: engine.DeadLetterStatus(q.oneOf("status",
			string(engine.StatusPending), string(engine.StatusResolved), string(engine.StatusExpired))),
		InstanceID:    q.text("instanceId", engine.MaxInstanceIDLength),
		CorrelationID: q.text("correlationId", engine.MaxIDLength),
		From:          from,
		To:            to,
	}
}

func (a *api) getDeadLetter(ctx context.Context, r *request) (reply, error) {
	engineName, rowKey, err := a.row(ctx, r)
	if err != nil {
		return reply{}, err
	}
	d, err := a.letter(ctx, r, engineName, rowKey)
	if err != nil {
		return reply{}, err
	}
	return reply{data: deadLetterDetailOf(d), etag: d.ETag}, nil
}

func deadLetterItemOf(d engine.DeadLetter) deadLetterItem {
	return deadLetterItem{
		Engine:            d.Engine,
		RowKey:            d.RowKey,
		InstanceID:        d.InstanceID,
		OriginalQueue:     d.OriginalQueue,
		ErrorMessage:      d.ErrorMessage,
		DequeueCount:      d.DequeueCount,
		Status:            d.Status,
		FirstFailureAtUtc: d.FirstFailureAtUtc,
		LastFailureAtUtc:  d.LastFailureAtUtc,
		CorrelationID:     d.CorrelationID,
		ParentRowKey:      d.ParentRowKey,
		RetryCount:        d.RetryCount,
		Assignee:          d.Assignee,
		AssigneeName:      d.AssigneeName,
		AssignedAt:        d.AssignedAtUtc,
	}
}

func deadLetterDetailOf(d engine.DeadLetter) deadLetterDetail {
	text, encoding := shownMessage(d)
	return deadLetterDetail{
		deadLetterItem:          deadLetterItemOf(d),
		OriginalMessage:         text,
		OriginalMessageEncoding: encoding,
		MessageID:               d.MessageID,
		InsertedAtUtc:           d.InsertedAtUtc,
		DetectedReason:          d.DetectedReason,
		Node:                    d.Node,
		ErrorSignature:          d.ErrorSignature,
		ResolutionNotes:         d.ResolutionNotes,
		ResolvedAtUtc:           d.ResolvedAtUtc,
		ResolvedBy:              d.ResolvedBy,
		ExpiredAtUtc:            d.ExpiredAtUtc,
		RetryID:                 d.RetryID,
		RetriedAtUtc:            d.RetriedAtUtc,
		RetriedBy:               d.RetriedBy,
		RetryMessageID:          d.RetryMessageID,
		Notes:                   notesOf(d),
		SentMessage:             redact.Document(string(d.SentMessage)),
	}
}
