package api

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// timelineItem is one thing that happened under a correlation id: exactly one of History, DeadLetter, Orchestration and
// Change is there, and Kind says which.
type timelineItem struct {
	At            time.Time          `json:"atUtc"`
	Kind          string             `json:"kind"`
	Engine        string             `json:"engine"`
	History       *historyItem       `json:"history,omitempty"`
	DeadLetter    *deadLetterItem    `json:"deadLetter,omitempty"`
	Orchestration *orchestrationItem `json:"orchestration,omitempty"`
	Change        *changeItem        `json:"change,omitempty"`
}

// orchestrationItem is where an orchestration stands.
type orchestrationItem struct {
	ID        string              `json:"id"`
	Status    orchestrator.Status `json:"status"`
	Execution int                 `json:"execution"`
	waitingItem
	CreatedAt time.Time `json:"createdAtUtc"`
	UpdatedAt time.Time `json:"updatedAtUtc"`
	EndedAt   time.Time `json:"endedAtUtc,omitzero"`
	ErrorCode string    `json:"errorCode,omitempty"`
}

// timeline is oldest first. Truncated says that there are more entries or dead letters than the newest hundred of each, more
// orchestrations than a hundred of an engine, or changes of more orchestrations or rounds than were read.
type timeline struct {
	CorrelationID string         `json:"correlationId"`
	Items         []timelineItem `json:"items"`
	Truncated     bool           `json:"truncated"`
}

// getTimeline shows what all engines did under one correlation id. It costs a query an engine for the history and one for
// the dead letters, what Config.Orchestrations costs for the orchestrations, and a query or a few for the changes of each.
func (a *api) getTimeline(ctx context.Context, r *request) (reply, error) {
	id, ok := r.param("correlationId")
	if !ok || len(id) > engine.MaxIDLength || !utf8.ValidString(id) {
		return reply{}, notFound("No correlation id is like this: they have 1 to %d bytes of UTF-8.", engine.MaxIDLength)
	}
	entries, err := a.history.List(ctx, engine.HistoryFilter{Engines: a.engines, TenantID: r.principal().Scope, CorrelationID: id, Limit: engine.MaxLimit})
	if err != nil {
		return reply{}, err
	}
	letters, err := a.letters.List(ctx, engine.DeadLetterFilter{Engines: a.engines, TenantID: r.principal().Scope, CorrelationID: id, Limit: engine.MaxLimit})
	if err != nil {
		return reply{}, err
	}
	items, more, err := a.orchestrationsOf(ctx, r, id)
	if err != nil {
		return reply{}, err
	}
	for _, e := range entries.Entries {
		item := historyItemOf(e)
		items = append(items, timelineItem{At: e.CreatedAtUtc, Kind: "history", Engine: e.Engine, History: &item})
	}
	for _, d := range letters.DeadLetters {
		item := deadLetterItemOf(d)
		items = append(items, timelineItem{At: d.LastFailureAtUtc, Kind: "deadLetter", Engine: d.Engine, DeadLetter: &item})
	}
	slices.SortStableFunc(items, func(a, b timelineItem) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Engine, b.Engine)) })
	return reply{data: timeline{id, items, more || entries.Token != "" || letters.Token != ""}}, nil
}

// orchestrationsOf are the runs of the correlation id that the runtime still knows, at the time they began, and how their
// states changed since.
func (a *api) orchestrationsOf(ctx context.Context, r *request, correlationID string) (items []timelineItem, more bool, err error) {
	items = []timelineItem{}
	if a.orchestrations == nil {
		return items, false, nil
	}
	budget := maxChanged
	for _, name := range a.engines {
		found, cut, err := a.orchestrations(ctx, name, correlationID)
		if err != nil {
			return nil, false, err
		}
		more = more || cut
		for _, s := range found {
			if !r.principal().Sees(s.TenantID) {
				continue
			}
			items = append(items, timelineItem{At: s.CreatedAt, Kind: "orchestration", Engine: name, Orchestration: &orchestrationItem{
				ID: s.ID, Status: s.Status, Execution: s.Execution, waitingItem: a.waitingItemOf(s),
				CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, EndedAt: s.EndedAt, ErrorCode: s.ErrorCode,
			}})
			if budget == 0 {
				more = true
				continue
			}
			budget--
			changes, cut, err := a.changesOf(ctx, name, s.ID)
			if err != nil {
				return nil, false, err
			}
			items, more = append(items, changes...), more || cut
		}
	}
	return items, more, nil
}
