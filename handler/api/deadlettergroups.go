package api

import (
	"context"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// maxSignature bounds an error signature, in bytes.
const maxSignature = 64

// groupItem is a group of dead letters with one error signature.
type groupItem struct {
	ErrorSignature    string         `json:"errorSignature"`
	Count             int            `json:"count"`
	Engines           []string       `json:"engines"`
	FirstFailureAtUtc time.Time      `json:"firstFailureAtUtc"`
	LastFailureAtUtc  time.Time      `json:"lastFailureAtUtc"`
	Sample            deadLetterItem `json:"sample"`
}

// groups are the groups, the largest first. If the dead letters are read one by one, and the newest engine.MaxGrouped
// are not all, Complete is false.
type groups struct {
	Items    []groupItem `json:"items"`
	Examined int         `json:"examined"`
	Complete bool        `json:"complete"`
}

func (a *api) groupDeadLetters(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "engine", "status", "instanceId", "correlationId", "fromDate", "toDate", "limit")
	limit := q.limit()
	names, err := a.names(ctx, q.values.Get("engine"))
	if err != nil {
		return reply{}, err
	}
	f := letterFilter(r, q, names)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	found, err := a.letters.Groups(ctx, f)
	if err != nil {
		return reply{}, err
	}
	if limit == 0 {
		limit = engine.DefaultLimit
	}
	out := groups{Items: []groupItem{}, Examined: found.Examined, Complete: found.Complete}
	for _, g := range found.Groups[:min(limit, len(found.Groups))] {
		out.Items = append(out.Items, groupItem{g.ErrorSignature, g.Count, g.Engines, g.FirstFailureAtUtc, g.LastFailureAtUtc, deadLetterItemOf(g.Sample)})
	}
	return reply{data: out}, nil
}

// countItem is the numbers of dead letters of an engine by status.
type countItem struct {
	Engine   string `json:"engine"`
	Pending  int64  `json:"pending"`
	Resolved int64  `json:"resolved"`
	Expired  int64  `json:"expired"`
}

func (a *api) countDeadLetters(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "engine")
	names, err := a.names(ctx, q.values.Get("engine"))
	if err != nil {
		return reply{}, err
	}
	engines := q.engines(names)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	counts, err := a.letters.TenantCounts(ctx, engines, r.principal().Scope)
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(counts, "", func(c engine.DeadLetterCounts) countItem {
		return countItem{c.Engine, c.Pending, c.Resolved, c.Expired}
	})}, nil
}
