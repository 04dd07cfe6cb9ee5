package api

import (
	"cmp"
	"context"
	"net/url"

	"github.com/vibedata/roundhouse/handler/api/bulk"
)

// listOrchestrations lists orchestrations, newest first, or by id with a prefix.
func (a *api) listOrchestrations(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "orchestrator", "status", "idPrefix", "tag", "customStatus", "fromDate", "toDate", "limit", "continuationToken")
	f := orchestrationFilter(q)
	f.Tag, f.CustomStatus = q.text("tag", maxTag), q.text("customStatus", maxCustomStatus)
	f.TenantID = r.principal().Scope
	limit := cmp.Or(q.limit(), defaultPage)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	fingerprint := fingerprintOf("orchestrations", f)
	place, err := openToken(q.values.Get("continuationToken"), fingerprint)
	if err != nil {
		return reply{}, err
	}
	found, next, err := a.list(ctx, f, limit, place)
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(found, sealToken(next, fingerprint), a.summaryItemOf)}, nil
}

// purgeSelection is the body of a purge by filter. EndedBefore or olderThanDays is required.
type purgeSelection struct {
	Orchestrator  string `json:"orchestrator"`
	IDPrefix      string `json:"idPrefix"`
	Status        string `json:"status"`
	FromDate      string `json:"fromDate"`
	ToDate        string `json:"toDate"`
	EndedBefore   string `json:"endedBefore"`
	OlderThanDays *int   `json:"olderThanDays"`
}

// purgeMany starts an operation that purges ended orchestrations.
func (a *api) purgeMany(ctx context.Context, r *request) (reply, error) {
	var s purgeSelection
	if err := r.decode(&s); err != nil {
		return reply{}, err
	}
	q := &query{values: url.Values{"orchestrator": {s.Orchestrator}, "idPrefix": {s.IDPrefix}, "status": {s.Status}, "fromDate": {s.FromDate},
		"toDate": {s.ToDate}, "endedBefore": {s.EndedBefore}}}
	f := orchestrationFilter(q)
	req := bulk.Request{Action: bulk.ActionPurge, Orchestrator: f.Orchestrator, IDPrefix: f.Prefix, From: f.CreatedFrom, CreatedTo: f.CreatedTo,
		To: q.date("endedBefore"), OlderThanDays: q.bounded("olderThanDays", s.OlderThanDays, 0, maxAge)}
	if len(f.Statuses) > 0 {
		req.Status = string(f.Statuses[0])
		if !f.Statuses[0].Ended() {
			q.problem("status", "Only what has ended can be purged.")
		}
	}
	if (s.EndedBefore == "") == (s.OlderThanDays == nil) {
		q.problem("olderThanDays", "Say since when the orchestrations have to have ended, by either olderThanDays or endedBefore: there is no default for it.")
	}
	return a.operate(ctx, r, q, bulk.OrchestrationKind, req)
}
