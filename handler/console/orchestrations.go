package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

// orchestrationsPath is the list of orchestrations, orchestrationPath one of them, by its id.
const (
	orchestrationsPath = Root + "/orchestrations"
	orchestrationPath  = orchestrationsPath + "/:id"
)

// purged is the notice on the list after the purge of one.
const purged = "purged"

// orchestrationField is a filter of orchestrations: Param is its name in the addresses of the console and of the API,
// and Label its label.
type orchestrationField struct{ Param, Label, Example string }

func orchestrationFields() []orchestrationField {
	return []orchestrationField{
		{Param: "status", Label: "Status"},
		{Param: "orchestrator", Label: "Orchestrator"},
		{Param: "idPrefix", Label: "Id begins with"},
		{Param: "tag", Label: "Business reference"},
		{Param: "customStatus", Label: "Custom status has"},
		{Param: "since", Label: "Created within", Example: "hour, today or week"},
		{Param: "fromDate", Label: "Created from", Example: "2026-11-21"},
		{Param: "toDate", Label: "Created until", Example: "2026-11-21T10:47:52Z"},
	}
}

// orchestrationFilter selects orchestrations, by the parameters of the address.
type orchestrationFilter struct{ values url.Values }

func orchestrationFilterOf(query url.Values) orchestrationFilter {
	f := orchestrationFilter{values: url.Values{}}
	for _, field := range orchestrationFields() {
		if value := query.Get(field.Param); value != "" {
			f.values.Set(field.Param, value)
		}
	}
	return f
}

// Statuses returns the options of the form.
func (orchestrationFilter) Statuses() []string {
	return []string{"Pending", "Running", "Suspended", "Retrying", "Stalled", "Completed", "Failed", "Terminated", "Canceled"}
}

// Status returns the selected one, "" for all.
func (f orchestrationFilter) Status() string { return f.values.Get("status") }

// Fields returns the text filters, each with its value.
func (f orchestrationFilter) Fields() (fields []filterField) {
	for _, field := range orchestrationFields() {
		if field.Param != "status" {
			fields = append(fields, filterField{field, f.values.Get(field.Param)})
		}
	}
	return fields
}

// filterField is a field of the form.
type filterField struct {
	orchestrationField
	Value string
}

// orchestrationsPage is a page of the list of orchestrations.
type orchestrationsPage struct {
	Filter orchestrationFilter
	Items  []orchestrationItem
	// Next is the address of the next page, and First that of the first; "" for none.
	Next, First string
	// Problem is the error of the filter.
	Problem Text
	// Purged means that one was purged from its page.
	Purged bool
	// MissingStart is the permission that the user lacks to start one, "" for none.
	MissingStart access.Permission

	columns []string
	now     time.Time
}

// orchestrationItem is an orchestration in lists.
type orchestrationItem struct {
	ID            Text      `json:"id"`
	Orchestrator  Text      `json:"orchestrator"`
	Version       Text      `json:"version"`
	Status        string    `json:"status"`
	CorrelationID Text      `json:"correlationId"`
	ParentID      Text      `json:"parentId"`
	Execution     int       `json:"execution"`
	WaitingFor    Text      `json:"waitingFor"`
	WaitingUntil  time.Time `json:"waitingUntilUtc"`
	Late          bool      `json:"late"`
	CreatedAt     time.Time `json:"createdAtUtc"`
	UpdatedAt     time.Time `json:"updatedAtUtc"`
	EndedAt       time.Time `json:"endedAtUtc"`
	ErrorCode     Text      `json:"errorCode"`
	Tag           Text      `json:"tag"`
}

// Ended reports whether it has ended.
func (o orchestrationItem) Ended() bool { return !o.EndedAt.IsZero() }

// Link returns the address of its page.
func (o orchestrationItem) Link() string { return orchestrationLink(o.ID) }

// Timeline returns the address of its work's timeline, "" without a correlation id.
func (o orchestrationItem) Timeline() string { return timelineOf(o.CorrelationID) }

// orchestrationLink returns the address of the page of an orchestration, "" without an id.
func orchestrationLink(id Text) string {
	if id == "" {
		return ""
	}
	return orchestrationsPath + "/" + urlpath.Escape(string(id))
}

type orchestrationList struct {
	Items []orchestrationItem `json:"items"`
	Token string              `json:"continuationToken"`
}

// orchestrations lists orchestrations.
func orchestrations(ctx context.Context, v *visit) (page, error) {
	query := v.r.URL.Query()
	p := orchestrationsPage{Filter: orchestrationFilterOf(query), Purged: query.Get("done") == purged, MissingStart: v.missing(access.OrchestrationsStart), columns: columnsOf(query.Get("columns")), now: v.console.config.Now()}
	asked := p.Filter.absolute(p.now)
	if token := query.Get("continuationToken"); token != "" {
		asked.Set("continuationToken", token)
		p.First = p.address(p.Filter.values)
	}
	if _, known := sinceValues()[query.Get("since")]; query.Get("since") != "" && !known {
		p.Problem = "since: Use hour, today or week."
		return page{template: "orchestrations", title: "Orchestrations", status: http.StatusBadRequest, code: "InvalidParameter", model: &p}, nil
	}
	var list orchestrationList
	err := v.api.get(ctx, "/api/orchestrations", asked, &list)
	out := page{template: "orchestrations", title: "Orchestrations", model: &p, live: Soon}
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
	} else if err != nil {
		return page{}, err
	}
	out.elsewhere = v.list("orchestration", "list")
	p.Items = list.Items
	if list.Token != "" {
		next := orchestrationFilterOf(query).values
		next.Set("continuationToken", list.Token)
		p.Next = p.address(next)
	}
	return out, nil
}
