package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
)

// change is the body of a PATCH of a dead letter. Missing and null members keep their values.
type change struct {
	Status          *string `json:"status"`
	ResolutionNotes *string `json:"resolutionNotes"`
}

func (c change) check() error {
	q := &query{values: url.Values{}}
	for name, value := range map[string]*string{"status": c.Status, "resolutionNotes": c.ResolutionNotes} {
		if value != nil {
			q.values.Set(name, *value)
		}
	}
	if len(q.values) == 0 || c.Status != nil && *c.Status == "" {
		q.problem("status", "Give a status, resolutionNotes or both.")
	}
	q.oneOf("status", string(engine.StatusPending), string(engine.StatusResolved), string(engine.StatusExpired))
	q.text("resolutionNotes", engine.MaxResolutionNotes)
	return q.err()
}

// patchDeadLetter changes the status or the notes of a dead letter (standard, section 3).
func (a *api) patchDeadLetter(ctx context.Context, r *request) (reply, error) {
	engineName, rowKey, err := a.row(ctx, r)
	if err != nil {
		return reply{}, err
	}
	var c change
	if err := r.decode(&c); err != nil {
		return reply{}, err
	}
	if err := c.check(); err != nil {
		return reply{}, err
	}
	d, err := a.letter(ctx, r, engineName, rowKey)
	if err != nil {
		return reply{}, err
	}
	decision := engine.Decision{Notes: c.ResolutionNotes, By: r.by(), At: a.now(), IfMatch: ifMatch(r.http.Header)}
	if c.Status != nil {
		decision.Status = engine.DeadLetterStatus(*c.Status)
	} else { // it keeps its status, if that has not changed since this read
		if decision.IfMatch != "" && decision.IfMatch != d.ETag {
			return reply{}, engine.ErrChanged
		}
		decision.Status, decision.IfMatch = d.Status, d.ETag
	}
	if err := r.call.Begin(ctx, letterChange("decide", d, c.ResolutionNotes)); err != nil {
		return reply{}, err
	}
	if d, err = a.letters.Decide(ctx, engineName, rowKey, decision); err != nil {
		return reply{}, a.deadLetterFailure(engineName, err)
	}
	r.after = string(d.Status)
	return reply{data: deadLetterDetailOf(d), etag: d.ETag}, nil
}

// letter reads a dead letter for a caller with permission.
func (a *api) letter(ctx context.Context, r *request, engineName, rowKey string) (engine.DeadLetter, error) {
	d, err := a.letters.Get(ctx, engineName, rowKey)
	if err == nil && !r.principal().Sees(d.TenantID) {
		return engine.DeadLetter{}, hidden(notFound("The engine %s has no dead letter of this row key.", engineName))
	}
	if err != nil {
		return engine.DeadLetter{}, a.deadLetterFailure(engineName, err)
	}
	return d, nil
}

// letterChange returns the audit record of a dead letter's change.
func letterChange(action string, d engine.DeadLetter, notes *string) access.Change {
	c := access.Change{Action: action, Target: "dlq/" + d.Engine + "/" + d.RowKey, Tenant: d.TenantID, Before: string(d.Status)}
	if notes != nil {
		c.Reason = *notes
	}
	return c
}

// ifMatch returns the ETag of the caller's version, "" for none or any.
func ifMatch(h http.Header) string {
	if tag := h.Get("If-Match"); tag != "*" {
		return tag
	}
	return ""
}

func (a *api) deadLetterFailure(engineName string, err error) error {
	if errors.Is(err, engine.ErrNotFound) {
		return notFound("The engine %s has no dead letter of this row key.", engineName)
	}
	return err
}

// retriedLetter is the answer to a retry: the same for every repeat.
type retriedLetter struct {
	Engine    string                  `json:"engine"`
	RowKey    string                  `json:"rowKey"`
	Status    engine.DeadLetterStatus `json:"status"`
	MessageID string                  `json:"messageId"`
	RetryID   string                  `json:"retryId"`
	RetriedAt time.Time               `json:"retriedAtUtc"`
	RetriedBy string                  `json:"retriedBy,omitempty"`
}

// retryDeadLetter retries a dead letter (standard, section 3).
func (a *api) retryDeadLetter(ctx context.Context, r *request) (reply, error) {
	engineName, rowKey, err := a.retriedRow(ctx, r)
	if err == nil {
		err = r.decode(&struct{}{})
	}
	if err != nil {
		return reply{}, err
	}
	d, err := a.letter(ctx, r, engineName, rowKey)
	if err != nil {
		return reply{}, err
	}
	if err := r.call.Begin(ctx, letterChange("retry", d, nil)); err != nil {
		return reply{}, err
	}
	if d, err = a.retrier.Retry(ctx, engineName, rowKey, r.by()); err != nil {
		return reply{}, a.deadLetterFailure(engineName, err)
	}
	r.after = fmt.Sprintf("%s, message %s", d.Status, d.RetryMessageID)
	return reply{data: retriedLetterOf(d)}, nil
}

func retriedLetterOf(d engine.DeadLetter) retriedLetter {
	return retriedLetter{Engine: d.Engine, RowKey: d.RowKey, Status: d.Status, MessageID: d.RetryMessageID, RetryID: d.RetryID, RetriedAt: d.RetriedAtUtc, RetriedBy: d.RetriedBy}
}

// deadLetterFailureOf returns the answer to errors about the state of a dead letter, nil for others.
func deadLetterFailureOf(err error) *failure {
	switch {
	case errors.Is(err, engine.ErrChanged):
		return &failure{status: http.StatusPreconditionFailed, problem: problem{
			Code: codePrecondition, Message: "The dead letter is not any more what If-Match names. Read it again.", Target: "If-Match",
		}}
	case errors.Is(err, engine.ErrState):
		return &failure{status: http.StatusConflict, problem: problem{
			Code:    codeInvalidState,
			Message: "The status of the dead letter does not allow this: what is pending can be retried, resolved or expired, what is expired resolved or made pending, what is resolved made pending.",
		}}
	case errors.Is(err, engine.ErrNotRetryable):
		return &failure{status: http.StatusUnprocessableEntity, problem: problem{
			Code: codeRetryUnsupported, Message: "The dead letter cannot be sent again: it came from no queue that exists here, and nothing else starts its engine, it is too large for a queue, or nobody can take it as it is.",
		}}
	default:
		return nil
	}
}
