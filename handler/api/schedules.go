package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/access"
)

const (
	// maxSchedule bounds the names of an engine and of a schedule, in bytes.
	maxSchedule = 128
	// resultsAtOnce bounds the results that are read in parallel.
	resultsAtOnce = 8
)

// scheduleItem is a schedule target in a list.
type scheduleItem struct {
	Engine   string          `json:"engine"`
	Schedule string          `json:"schedule"`
	Item     string          `json:"item,omitempty"`
	Cron     string          `json:"cron"`
	Source   schedule.Source `json:"source"`
	// Spread is a Go duration.
	Spread    string    `json:"spread,omitempty"`
	NextAtUtc time.Time `json:"nextAtUtc,omitzero"`
	// SlotUtc is the occurrence that was sent last, which was due at DueAtUtc.
	SlotUtc       time.Time `json:"slotUtc,omitzero"`
	DueAtUtc      time.Time `json:"dueAtUtc,omitzero"`
	SentAtUtc     time.Time `json:"sentAtUtc,omitzero"`
	Messages      int       `json:"messages"`
	CorrelationID string    `json:"correlationId,omitempty"`
	InstanceID    string    `json:"instanceId,omitempty"`
	TenantID      string    `json:"tenantId,omitempty"`
	// Result is the state of the first of the messages.
	Result     engine.Result `json:"result,omitempty"`
	Error      string        `json:"error,omitempty"`
	Failures   int           `json:"failures"`
	RetryAtUtc time.Time     `json:"retryAtUtc,omitzero"`
}

// listSchedules lists the schedule targets: when they are due, and their results.
func (a *api) listSchedules(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "engine", "schedule", "item", "limit", "continuationToken")
	f := schedule.Filter{Engine: q.oneOf("engine", a.engines...), Schedule: q.text("schedule", maxSchedule), Item: q.text("item", engine.MaxItemLength),
		Limit: cmp.Or(q.limit(), engine.DefaultLimit)}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	fingerprint := fingerprintOf("schedules", f)
	var err error
	if f.Token, err = openToken(q.values.Get("continuationToken"), fingerprint); err != nil {
		return reply{}, err
	}
	page, err := a.schedules.List(ctx, f)
	if err != nil {
		return reply{}, err
	}
	items, err := a.scheduleItems(ctx, page.Items)
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(items, sealToken(page.Token, fingerprint), func(i scheduleItem) scheduleItem { return i })}, nil
}

// scheduleItems adds the results of their messages to targets.
func (a *api) scheduleItems(ctx context.Context, all []schedule.Status) ([]scheduleItem, error) {
	items, errs := make([]scheduleItem, len(all)), make([]error, len(all))
	free := make(chan struct{}, resultsAtOnce)
	var wait sync.WaitGroup
	for n, s := range all {
		items[n] = scheduleItemOf(s)
		if s.Sent.CorrelationID == "" || a.result == nil {
			continue
		}
		free <- struct{}{}
		wait.Go(func() {
			defer func() { <-free }()
			items[n].Result, errs[n] = a.result(ctx, s.Engine, engine.Message{CorrelationID: s.Sent.CorrelationID, InstanceID: s.Sent.InstanceID, TenantID: s.Sent.TenantID})
		})
	}
	wait.Wait()
	return items, errors.Join(errs...)
}

func scheduleItemOf(s schedule.Status) scheduleItem {
	item := scheduleItem{Engine: s.Engine, Schedule: s.Schedule, Item: s.Item, Cron: s.Cron, Source: s.Source, NextAtUtc: s.NextAt, SlotUtc: s.Slot, DueAtUtc: s.DueAt,
		SentAtUtc: s.SentAt, Messages: s.Messages, CorrelationID: s.Sent.CorrelationID, InstanceID: s.Sent.InstanceID, TenantID: s.Sent.TenantID,
		Error: s.Error, Failures: s.Failures, RetryAtUtc: s.RetryAt}
	if s.Spread > 0 {
		item.Spread = s.Spread.String()
	}
	return item
}

// scheduleRun is the body of a manual run.
type scheduleRun struct {
	// Schedule is the schedule's name, optional for an engine with one schedule.
	Schedule string `json:"schedule"`
	// Item is the target; All selects all targets.
	Item string `json:"item"`
	All  bool   `json:"all"`
}

// scheduleSent lists the messages of a manual run.
type scheduleSent struct {
	Messages []sentMessage `json:"messages"`
}

type sentMessage struct {
	CorrelationID string `json:"correlationId"`
	InstanceID    string `json:"instanceId,omitempty"`
}

// runSchedule sends the messages of a schedule now. The header Idempotency-Key makes repeated requests one run.
func (a *api) runSchedule(ctx context.Context, r *request) (reply, error) {
	name, ok := r.param("engine")
	if !ok {
		return reply{}, notFound("There is nothing at this path.")
	}
	var body scheduleRun
	if err := r.decode(&body); err != nil {
		return reply{}, err
	}
	q := &query{values: url.Values{"schedule": {body.Schedule}, "item": {body.Item}}}
	q.text("schedule", maxSchedule)
	q.text("item", engine.MaxItemLength)
	key := cmp.Or(q.idempotencyKey(r), RequestKey(r.http.Header), uuid.NewString())
	if err := q.err(); err != nil {
		return reply{}, err
	}
	run := schedule.Run{Engine: name, Schedule: body.Schedule, Item: body.Item, All: body.All, Key: key}
	if err := a.schedules.Check(ctx, run); err != nil {
		return reply{}, err
	}
	target := "schedules/" + name
	if body.Item != "" {
		target += "/" + body.Item
	}
	if err := r.call.Begin(ctx, access.Change{Action: "run", Target: target}); err != nil {
		return reply{}, err
	}
	made, err := a.schedules.Run(ctx, run)
	if err != nil {
		return reply{}, err
	}
	out := scheduleSent{Messages: []sentMessage{}}
	for _, m := range made {
		out.Messages = append(out.Messages, sentMessage{m.CorrelationID, m.InstanceID})
	}
	r.after = "sent"
	return reply{status: http.StatusAccepted, data: out}, nil
}

// scheduleFailure returns the answer to errors about schedules, nil for others.
func scheduleFailure(err error) *failure {
	switch {
	case errors.Is(err, schedule.ErrNotFound):
		return notFound("There is no such schedule, or no such item: GET /api/schedules lists them.")
	case errors.Is(err, schedule.ErrSelection):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidParameter,
			Message: "Say which is meant: a schedule, where the engine has several; and an item, or all, where the schedule has items.", Target: "item"}}
	case errors.Is(err, schedule.ErrTooMany):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidParameter, Message: "The schedule has too many items for a run by hand: name one.", Target: "all"}}
	case errors.Is(err, schedule.ErrToken):
		return badToken()
	default:
		return nil
	}
}
