package api

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/audit"
)

const (
	// maxTarget bounds the target parameter of the audit log, maxPrincipal the principal, in bytes.
	maxTarget    = 2 << 10
	maxPrincipal = 512
)

// auditItem is an action of a principal.
type auditItem struct {
	ID            string        `json:"id"`
	AtUtc         time.Time     `json:"atUtc"`
	Principal     string        `json:"principal"`
	Name          string        `json:"name,omitempty"`
	Kind          string        `json:"kind"`
	Permission    string        `json:"permission,omitempty"`
	Action        string        `json:"action"`
	Target        string        `json:"target"`
	Door          string        `json:"door"`
	TenantID      string        `json:"tenantId,omitempty"`
	CorrelationID string        `json:"correlationId,omitempty"`
	Reason        string        `json:"reason,omitempty"`
	Before        string        `json:"before,omitempty"`
	Outcome       audit.Outcome `json:"outcome"`
	After         string        `json:"after,omitempty"`
	EndedAtUtc    time.Time     `json:"endedAtUtc,omitzero"`
}

// listAudit lists the audit log, newest first.
func (a *api) listAudit(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "target", "principal", "fromDate", "toDate", "limit", "continuationToken")
	from, to := q.period()
	f := audit.Filter{Target: q.text("target", maxTarget), Principal: q.text("principal", maxPrincipal), From: from, To: to}
	limit := cmp.Or(q.limit(), defaultPage)
	if f.Target != "" && f.Principal != "" {
		q.problem("principal", "Use either target or principal.")
	}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	fingerprint := fingerprintOf("audit", f)
	place, err := openToken(q.values.Get("continuationToken"), fingerprint)
	if err != nil {
		return reply{}, err
	}
	page, err := a.door.Audit.List(ctx, f, limit, place)
	if errors.Is(err, audit.ErrToken) {
		err = badToken()
	}
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(page.Entries, sealToken(page.Next, fingerprint), auditItemOf)}, nil
}

func auditItemOf(e audit.Entry) auditItem {
	return auditItem{ID: e.ID, AtUtc: e.At, Principal: e.Principal, Name: e.Name, Kind: e.Kind, Permission: e.Permission, Action: e.Action, Target: e.Target,
		Door: e.Door, TenantID: e.TenantID, CorrelationID: e.CorrelationID, Reason: e.Reason, Before: e.Before, Outcome: e.Outcome, After: e.After, EndedAtUtc: e.EndedAt}
}
