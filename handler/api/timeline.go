package api

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/api/timeline"
	"github.com/vibedata/roundhouse/orchestrator"
)

// timelineItem is one event of a correlation id: exactly one of the members from Message on is set, and Kind names
// it.
type timelineItem struct {
	ID               string                     `json:"id"`
	At               time.Time                  `json:"atUtc"`
	EndedAt          time.Time                  `json:"endedAtUtc,omitzero"`
	Kind             timeline.Kind              `json:"kind"`
	Engine           string                     `json:"engine"`
	Message          *timeline.Message          `json:"message,omitempty"`
	Orchestration    *orchestrationItem         `json:"orchestration,omitempty"`
	Change           *timeline.Change           `json:"change,omitempty"`
	Call             *timeline.Call             `json:"call,omitempty"`
	Timer            *timeline.Timer            `json:"timer,omitempty"`
	Event            *timeline.Event            `json:"event,omitempty"`
	Task             *timeline.Task             `json:"task,omitempty"`
	Publication      *timeline.Publication      `json:"publication,omitempty"`
	Delivery         *timeline.Delivery         `json:"delivery,omitempty"`
	Link             *timeline.Link             `json:"link,omitempty"`
	History          *historyItem               `json:"history,omitempty"`
	DeadLetter       *deadLetterItem            `json:"deadLetter,omitempty"`
	DeadLetterChange *timeline.DeadLetterChange `json:"deadLetterChange,omitempty"`
	Action           *timeline.Action           `json:"action,omitempty"`
}

// orchestrationItem is the state of an orchestration.
type orchestrationItem struct {
	ID string `json:"id"`
	// Orchestrator is its name, ParentID its caller's orchestration.
	Orchestrator string              `json:"orchestrator,omitempty"`
	ParentID     string              `json:"parentId,omitempty"`
	Status       orchestrator.Status `json:"status"`
	Execution    int                 `json:"execution"`
	waitingItem
	CreatedAt time.Time `json:"createdAtUtc"`
	UpdatedAt time.Time `json:"updatedAtUtc"`
	EndedAt   time.Time `json:"endedAtUtc,omitzero"`
	ErrorCode string    `json:"errorCode,omitempty"`
}

// timelinePage is a page of a timeline, oldest first. Truncated means that something is missing in all pages.
type timelinePage struct {
	CorrelationID     string         `json:"correlationId"`
	Items             []timelineItem `json:"items"`
	Truncated         bool           `json:"truncated"`
	ContinuationToken string         `json:"continuationToken,omitempty"`
}

// timelines returns the sources of timelines.
func (c Config) timelines(a *api) *timeline.Reader {
	t := timeline.Config{Engines: a.engines, History: c.History, DeadLetters: c.DeadLetters, List: a.list, RunID: c.RunID, EventID: c.EventID, Now: a.now, Log: a.log}
	if a.door.Audit != nil {
		t.Audit = a.door.Audit
	}
	if c.Runtime != nil { // a nil pointer in an interface is not nil
		t.Runs = c.Runtime
	}
	if c.Tasks != nil {
		t.Tasks = c.Tasks
	}
	if c.Outbox != nil {
		t.Events = c.Outbox
	}
	return timeline.NewReader(t)
}

// getTimeline returns the events of a correlation id, in all engines. Package timeline documents the cost.
func (a *api) getTimeline(ctx context.Context, r *request) (reply, error) {
	id, ok := r.param("correlationId")
	if !ok || len(id) > engine.MaxIDLength || !utf8.ValidString(id) {
		return reply{}, notFound("No correlation id is like this: they have 1 to %d bytes of UTF-8.", engine.MaxIDLength)
	}
	q := newQuery(r.http.URL.RawQuery, "kind", "since", "limit", "continuationToken")
	want := timeline.Query{CorrelationID: id, TenantID: r.principal().Scope, Kind: timeline.Kind(q.oneOf("kind", kindNames()...)), Since: q.date("since"),
		Limit: q.number("limit", timeline.MaxLimit)}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	fingerprint := fingerprintOf("timeline", id, want.TenantID, want.Kind, want.Since.UTC())
	var err error
	if want.After, err = openToken(q.values.Get("continuationToken"), fingerprint); err != nil {
		return reply{}, err
	}
	page, err := a.timelines.Read(ctx, want)
	switch {
	case errors.Is(err, timeline.ErrNotFound):
		return reply{}, notFound("Nothing is known under this correlation id.")
	case errors.Is(err, timeline.ErrPlace):
		return reply{}, badToken()
	case err != nil:
		return reply{}, err
	}
	shown := timelinePage{CorrelationID: id, Items: make([]timelineItem, len(page.Items)), Truncated: page.Truncated, ContinuationToken: sealToken(page.Next, fingerprint)}
	for n, i := range page.Items {
		shown.Items[n] = a.timelineItemOf(i)
	}
	return reply{data: shown}, nil
}

func kindNames() (names []string) {
	for _, k := range timeline.Kinds() {
		names = append(names, string(k))
	}
	return slices.Clip(names)
}

func (a *api) timelineItemOf(i timeline.Item) timelineItem {
	shown := timelineItem{ID: i.ID, At: i.At, EndedAt: i.EndedAt, Kind: i.Kind, Engine: i.Engine, Message: i.Message, Change: i.Change, Call: i.Call, Timer: i.Timer,
		Event: i.Event, Task: i.Task, Publication: i.Publication, Delivery: i.Delivery, Link: i.Link, DeadLetterChange: i.DeadLetterChange, Action: i.Action}
	switch {
	case i.History != nil:
		item := historyItemOf(*i.History)
		shown.History = &item
	case i.DeadLetter != nil:
		item := deadLetterItemOf(*i.DeadLetter)
		shown.DeadLetter = &item
	case i.Orchestration != nil:
		s := *i.Orchestration
		shown.Orchestration = &orchestrationItem{ID: s.ID, Orchestrator: s.Orchestrator, ParentID: s.Parent, Status: s.Status, Execution: s.Execution,
			waitingItem: a.waitingItemOf(s), CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, EndedAt: s.EndedAt, ErrorCode: s.ErrorCode}
	}
	return shown
}
