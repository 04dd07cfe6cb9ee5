package console

import (
	"cmp"
	"context"
	"net/url"
	"time"
)

const auditPath = Root + "/audit"

// auditFilters are the names of the filters of the audit log, in the addresses of the console and of the API.
var auditFilters = []string{"target", "principal", "fromDate", "toDate"}

// auditPage is a page of the audit log.
type auditPage struct {
	Target, Principal, From, To string
	// Narrowed reports whether a filter is set.
	Narrowed bool
	Items    []auditItem
	// Next is the address of the next page, and First that of the newest; "" for none.
	Next, First string
	// Problem is the error of the filter.
	Problem Text
}

// auditItem is a change or an attempted change.
type auditItem struct {
	At            time.Time `json:"atUtc"`
	Principal     Text      `json:"principal"`
	Name          Text      `json:"name"`
	Kind          Text      `json:"kind"`
	Permission    Text      `json:"permission"`
	Action        Text      `json:"action"`
	Target        Text      `json:"target"`
	Door          Text      `json:"door"`
	TenantID      Text      `json:"tenantId"`
	CorrelationID Text      `json:"correlationId"`
	Reason        Text      `json:"reason"`
	Before        Text      `json:"before"`
	Outcome       string    `json:"outcome"`
	After         Text      `json:"after"`
}

// Who returns the principal.
func (i auditItem) Who() Text { return cmp.Or(i.Name, i.Principal) }

// SameTarget returns the address of the other changes of its target.
func (i auditItem) SameTarget() string { return oneParameter(auditPath, "target", string(i.Target)) }

// SamePerson returns the address of the principal's other changes.
func (i auditItem) SamePerson() string {
	return oneParameter(auditPath, "principal", string(i.Principal))
}

// auditLog shows the audit log, newest first.
func auditLog(ctx context.Context, v *visit) (page, error) {
	query, kept := v.r.URL.Query(), url.Values{}
	for _, name := range auditFilters {
		if value := query.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	p := auditPage{Target: kept.Get("target"), Principal: kept.Get("principal"), From: kept.Get("fromDate"), To: kept.Get("toDate"), Narrowed: len(kept) > 0}
	here := address(auditPath, kept)
	if token := query.Get("continuationToken"); token != "" {
		kept.Set("continuationToken", token)
		p.First = here
	}
	var list struct {
		Items []auditItem `json:"items"`
		Token string      `json:"continuationToken"`
	}
	out := page{template: "audit", title: "Audit log", model: &p, live: Late}
	err := v.api.get(ctx, "/api/audit", kept, &list)
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
	} else if err != nil {
		return page{}, err
	}
	out.elsewhere = v.list("audit", "list")
	p.Items = list.Items
	if list.Token != "" {
		kept.Set("continuationToken", list.Token)
		p.Next = address(auditPath, kept)
	}
	return out, nil
}
