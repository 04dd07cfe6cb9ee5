package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

const (
	// purgePath purges all orchestrations of a filter, forcePath a single unreadable one.
	purgePath = Root + "/purge"
	forcePath = orchestrationPath + "/force-purge"
)

const (
	// countPages is the number of pages of countLimit orchestrations that are read to count a purge.
	countPages, countLimit = 10, 100
	// damagedCode is the API's code for an unreadable orchestration.
	damagedCode = "OrchestrationDamaged"
)

// purgeFields are the parts of a filter that a purge accepts, in the order of its form.
func purgeFields() []orchestrationField {
	return []orchestrationField{
		{Param: "endedBefore", Label: "Ended before", Example: "2026-11-21T10:47:52Z"},
		{Param: "orchestrator", Label: "Orchestrator"},
		{Param: "idPrefix", Label: "Id begins with"},
		{Param: "fromDate", Label: "Created from", Example: "2026-11-21"},
		{Param: "toDate", Label: "Created until", Example: "2026-11-21T10:47:52Z"},
	}
}

// purgePage shows the extent of a purge, and asks for confirmation.
type purgePage struct {
	values url.Values
	// Until is the time before which the purged ones have ended: at the latest that of the page.
	Until Text
	// Count is the number of orchestrations, and AtLeast means that more may exist.
	Count   int
	AtLeast bool
	Key     string
	Missing access.Permission
	// Problem is the error of the filter, "" for none.
	Problem Text
}

// Action returns the target of the form.
func (purgePage) Action() string { return purgePath }

// Fields returns the text filters, each with its value.
func (p purgePage) Fields() (fields []filterField) {
	for _, f := range purgeFields() {
		fields = append(fields, filterField{f, p.values.Get(f.Param)})
	}
	return fields
}

// Statuses returns those of ended orchestrations.
func (purgePage) Statuses() []string {
	return []string{"Completed", "Failed", "Terminated", "Canceled"}
}

// Status returns the selected one, "" for all.
func (p purgePage) Status() string { return p.values.Get("status") }

// Hidden returns the hidden values of the form: the filter, as counted.
func (p purgePage) Hidden() (fields []filterField) {
	for _, f := range append([]orchestrationField{{Param: "status", Label: "Status"}}, purgeFields()...) {
		value := p.values.Get(f.Param)
		if f.Param == "endedBefore" {
			value = string(p.Until)
		}
		if value != "" {
			fields = append(fields, filterField{f, value})
		}
	}
	return fields
}

// Back returns the address of the list with those parts of the filter that it has.
func (p purgePage) Back() string { return address(orchestrationsPath, p.list()) }

// list returns the filter of the list.
func (p purgePage) list() url.Values {
	list := url.Values{}
	for name, values := range p.values {
		if name != "endedBefore" {
			list[name] = values
		}
	}
	return list
}

// purgeFilterOf returns the filter of an address or a form.
func purgeFilterOf(from url.Values) url.Values {
	values := url.Values{}
	for _, f := range append([]orchestrationField{{Param: "status"}}, purgeFields()...) {
		if value := from.Get(f.Param); value != "" {
			values.Set(f.Param, value)
		}
	}
	return values
}

// askPurge shows the page with the number of orchestrations. It changes nothing.
func askPurge(ctx context.Context, v *visit) (page, error) {
	query := v.r.URL.Query()
	p := &purgePage{values: purgeFilterOf(query), Key: v.console.config.NewKey(), Missing: v.missing(access.OrchestrationsPurge)}
	until, _ := frozen(p.values.Get("endedBefore"), v.console.config.Now())
	p.Until = until
	out := page{template: "purge", title: "Purge orchestrations", model: p}
	for _, name := range []string{"tag", "customStatus"} {
		if query.Get(name) != "" {
			p.Problem = "A purge takes no filter for the business reference or the custom status: it would delete more than the list showed. Take it out of the filter."
			out.status, out.code = http.StatusBadRequest, "InvalidParameter"
			return out, nil
		}
	}
	err := v.countEnded(ctx, p)
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
		return out, nil
	}
	return out, err
}

// countEnded counts the orchestrations of a purge, within the pages that it reads.
func (v *visit) countEnded(ctx context.Context, p *purgePage) error {
	asked := p.list()
	asked.Set("limit", strconv.Itoa(countLimit))
	until, err := timeOf(string(p.Until))
	for range countPages {
		var list orchestrationList
		if failed := v.api.get(ctx, "/api/orchestrations", asked, &list); failed != nil { // a missing permission is reported first
			return failed
		}
		if err != nil {
			return &apiError{Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "endedBefore: Use a time such as 2026-11-21T10:47:52Z or a date such as 2026-11-21."}
		}
		for _, o := range list.Items {
			if o.Ended() && o.EndedAt.Before(until) {
				p.Count++
			}
		}
		if list.Token == "" {
			return nil
		}
		asked.Set("continuationToken", list.Token)
	}
	p.AtLeast = true
	return nil
}

// timeOf reads a time, or a date, which means its beginning in UTC.
func timeOf(text string) (at time.Time, err error) {
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	return at, err
}

// startPurge starts the operation, and leads to its page. A form that is sent twice starts one.
func startPurge(ctx context.Context, v *visit) (page, error) {
	if err := v.r.ParseForm(); err != nil {
		return refusedPage(http.StatusBadRequest, "InvalidRequestBody", "The form cannot be read, or is too large."), nil
	}
	body, back := map[string]any{}, purgeFilterOf(v.r.PostForm)
	for name := range back { // without endedBefore, the form is not from the confirmation page, and the API refuses it
		body[name] = back.Get(name)
	}
	return v.operate(ctx, "/api/orchestrations/purge", body, v.r.PostForm, address(purgePath, back))
}

// forcePage returns the confirmation page for purging an unreadable one.
func (v *visit) forcePage(what Text) *confirmPage {
	id := Text(v.r.PathValue("id"))
	return &confirmPage{Title: "Purge an orchestration by force", Button: "Purge by force", What: what, Back: orchestrationLink(id), Action: orchestrationLink(id) + "/force-purge", Key: v.console.config.NewKey(),
		HasReason: true, Reason: v.r.PostForm.Get("reason"), Missing: v.missing(access.OrchestrationsForcePurge),
		Consequence: "Everything of it is deleted, whether it has ended or not, and what it had called is terminated and deleted with it. What it has locked stays locked until that expires. It needs a reason, which the audit log keeps with your name. This cannot be taken back: restoring its rows is the other way."}
}

// askForce shows the confirmation page.
func askForce(ctx context.Context, v *visit) (page, error) {
	o, err := v.findOrchestration(ctx)
	id := Text(v.r.PathValue("id"))
	switch refused, ok := asAPIError(err); {
	case ok && refused.Code == damagedCode:
		return v.forcePage(id + " is damaged: it cannot be read.").shown(), nil
	case err != nil:
		return page{}, err
	case !o.Ended():
		p := v.forcePage(id)
		p.Problem = "It can be read, and has not ended. Terminate it first; then it is purged without force."
		return p.shown(), nil
	}
	return v.forcePage(id + " can be read, and has ended: it is purged without force as well.").shown(), nil
}

// doForce purges it.
func doForce(ctx context.Context, v *visit) (page, error) {
	form, _, err := v.posted()
	if err != nil {
		return page{}, err
	}
	_, err = v.api.send(ctx, http.MethodDelete, v.orchestrationRow(), url.Values{"force": {"true"}, "reason": {form.Get("reason")}}, nil, nil, nil)
	if !v.may(access.OrchestrationsForcePurge) && err != nil {
		return page{}, err
	}
	return v.forcePage(Text(v.r.PathValue("id"))).outcome(err, address(orchestrationsPath, url.Values{"done": {purged}}))
}

// purgeRoutes are the pages that purge.
func purgeRoutes() []route {
	return []route{
		routeOf(http.MethodGet, purgePath, access.OrchestrationsRead, askPurge),
		routeOf(http.MethodPost, purgePath, access.OrchestrationsPurge, startPurge),
		routeOf(http.MethodGet, forcePath, access.OrchestrationsRead, askForce),
		routeOf(http.MethodPost, forcePath, access.OrchestrationsForcePurge, doForce),
	}
}

// Purge returns the address that confirms the purge of the filter's orchestrations.
func (p orchestrationsPage) Purge() string {
	query := p.Filter.absolute(p.now)
	if status := query.Get("status"); status != "" && !slices.Contains(purgePage{}.Statuses(), status) {
		query.Del("status")
	}
	return address(purgePath, query)
}
