package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/vibedata/roundhouse/handler/access"
)

const operationsPath = Root + "/operations"

// operationRoutes are those of operations.
func operationRoutes() []route {
	all := []route{
		routeOf(http.MethodGet, operationsPath, access.OperationsRead, operationList),
		routeOf(http.MethodGet, operationPath, access.OperationsRead, showOperation),
	}
	for _, name := range []string{"cancel", "pause", "resume"} {
		all = append(all, routeOf(http.MethodPost, operationPath+"/"+name, access.OperationsCancel, commandOperation(name)))
	}
	return all
}

// operationsPage is a page of the list of operations.
type operationsPage struct {
	Filter operationFilter
	Items  []operation
	// Next is the address of the next page, and First that of the first; "" for none.
	Next, First string
	// Problem is the error of the filter.
	Problem Text
}

// operationFilter selects operations, by the parameters of the address.
type operationFilter struct {
	Status string
	By     Text
}

// Statuses returns the options of the form. Open ones have not ended.
func (operationFilter) Statuses() []string {
	return []string{anyStatus, "Open", "NotStarted", "Running", "Paused", "Succeeded", "Failed", "Canceled"}
}

// Narrowed reports whether a filter is set.
func (f operationFilter) Narrowed() bool { return f.Status != anyStatus || f.By != "" }

// query returns the filter, from a position of the list on.
func (f operationFilter) query(token string) url.Values {
	out := url.Values{}
	for name, value := range map[string]string{"status": f.Status, "by": string(f.By), "continuationToken": token} {
		if value != "" && (name != "status" || value != anyStatus) {
			out.Set(name, value)
		}
	}
	return out
}

// operationList lists operations, the newest first.
func operationList(ctx context.Context, v *visit) (page, error) {
	query := v.r.URL.Query()
	p := operationsPage{Filter: operationFilter{Status: query.Get("status"), By: Text(query.Get("by"))}}
	if p.Filter.Status == "" {
		p.Filter.Status = anyStatus
	}
	token := query.Get("continuationToken")
	if token != "" {
		p.First = address(operationsPath, p.Filter.query(""))
	}
	var list operations
	out := page{template: "operations", title: "Operations", model: &p, live: Soon}
	err := v.api.get(ctx, "/api/operations", p.Filter.query(token), &list)
	out.elsewhere = v.list("operation", "list")
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
	} else if err != nil {
		return page{}, err
	}
	p.Items = list.Items
	if list.Token != "" {
		p.Next = address(operationsPath, p.Filter.query(list.Token))
	}
	return out, nil
}

// operations is a page of them, as in the API.
type operations struct {
	Items []operation `json:"items"`
	Token string      `json:"continuationToken"`
}

func (l operations) empty() bool { return len(l.Items) == 0 }

// Link returns the address of its page.
func (o operation) Link() string { return operationLink(o.ID) }
