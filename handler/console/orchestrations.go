package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

// orchestrationsPath is where the list of orchestrations is, orchestrationPath one of them, by its id.
const (
	orchestrationsPath = Root + "/orchestrations"
	orchestrationPath  = orchestrationsPath + "/:id"
)

// purged is what the list is told after the purge of one.
const purged = "purged"

// orchestrationField is a filter of orchestrations: Param names it in the address of the console and of the API, and Label for people.
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

// orchestrationFilter selects orchestrations, as the address has it.
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

// Statuses are what the form offers.
func (orchestrationFilter) Statuses() []string {
	return []string{"Pending", "Running", "Suspended", "Retrying", "Stalled", "Completed", "Failed", "Terminated", "Canceled"}
}

// Status is the selected one, "" for all.
func (f orchestrationFilter) Status() string { return f.values.Get("status") }

// Fields are the filters that are texts, each with its value.
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
	// Next is the address of what follows, and First that of the beginning; "" where there is none.
	Next, First string
	// Problem is what is wrong with the filter.
	Problem Text
	// Purged says that one was purged from its page.
	Purged bool
	// MissingStart is the permission that whoever looks lacks to start one, "" for none.
	MissingStart access.Permission

	columns []string
	now     time.Time
}

// orchestrationItem is an orchestration as lists show it.
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

// Ended says whether it has ended: nothing follows by itself.
func (o orchestrationItem) Ended() bool { return !o.EndedAt.IsZero() }

// Link is the address of its page.
func (o orchestrationItem) Link() string { return orchestrationLink(o.ID) }

// Timeline is the address of what happened to its work, "" without a correlation id.
func (o orchestrationItem) Timeline() string { return timelineOf(o.CorrelationID) }

// orchestrationLink is the address of the page of an orchestration, "" without an id.
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
