package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/urlpath"
)

// filters are the names of the filters of dead letters, in the addresses of the console and of the API.
var filters = []string{"engine", "status", "instanceId", "correlationId", "errorSignature", "assignee", "fromDate", "toDate"}

// anyStatus is the status in the address of the console that selects all; the default is pending.
const anyStatus = "any"

// filter selects dead letters, by the parameters of the address.
type filter struct {
	Engine, Status, InstanceID, CorrelationID, Signature, Assignee, From, To string

	values url.Values
}

func filterOf(query url.Values) filter {
	f := filter{values: url.Values{}}
	for _, name := range filters {
		if value := query.Get(name); value != "" {
			f.values.Set(name, value)
		}
	}
	if f.values.Get("status") == "" {
		f.values.Set("status", "Pending")
	}
	get := f.values.Get
	f.Engine, f.Status, f.InstanceID, f.CorrelationID, f.Signature, f.From, f.To = get("engine"), get("status"), get("instanceId"), get("correlationId"), get("errorSignature"), get("fromDate"), get("toDate")
	f.Assignee = get("assignee")
	return f
}

// Statuses returns the options of the form.
func (filter) Statuses() []string { return []string{"Pending", "Resolved", "Expired", anyStatus} }

// Narrowed reports whether more than the status is set.
func (f filter) Narrowed() bool { return len(f.values) > 1 }

// Reset returns the address of the list without the filter.
func (filter) Reset() string { return lettersPath }

// List returns the address of the list of the filter.
func (f filter) List() string { return address(lettersPath, f.values) }

// Causes returns the same by cause, where a cause is not a filter.
func (f filter) Causes() string {
	query := f.without("errorSignature")
	query.Del("assignee")
	return address(causesPath, query)
}

func (f filter) without(name string) url.Values {
	out := url.Values{}
	for n, v := range f.values {
		if n != name {
			out[n] = v
		}
	}
	return out
}

// query returns the filter in the form of the API.
func (f filter) query() url.Values {
	if f.Status == anyStatus {
		return f.without("status")
	}
	return f.without("")
}

// lettersPage is a page of the list of dead letters.
type lettersPage struct {
	Filter filter
	// Engines are the options of the form.
	Engines []Text
	Items   []letterItem
	// Next is the address of the next page, and First that of the first; "" for none.
	Next, First string
	// Problem is the error of the filter.
	Problem Text
	// Checked means that everything on the page is selected.
	Checked bool

	token string
}

// letterItem is a dead letter in lists.
type letterItem struct {
	Engine        Text      `json:"engine"`
	RowKey        Text      `json:"rowKey"`
	InstanceID    Text      `json:"instanceId"`
	ErrorMessage  Text      `json:"errorMessage"`
	DequeueCount  int       `json:"dequeueCount"`
	Status        string    `json:"status"`
	FirstFailure  time.Time `json:"firstFailureAtUtc"`
	LastFailure   time.Time `json:"lastFailureAtUtc"`
	CorrelationID Text      `json:"correlationId"`
	OriginalQueue Text      `json:"originalQueue"`
	ParentRowKey  Text      `json:"parentRowKey"`
	RetryCount    int       `json:"retryCount"`
	Assignee      Text      `json:"assignee"`
	AssigneeName  Text      `json:"assigneeName"`
	AssignedAt    time.Time `json:"assignedAtUtc"`
}

// Link returns the address of its page.
func (l letterItem) Link() string { return letterLink(l.Engine, l.RowKey) }

// Timeline returns the address of its work's timeline, "" without a correlation id.
func (l letterItem) Timeline() string { return timelineOf(l.CorrelationID) }

// Line returns the error in short.
func (l letterItem) Line() Text { return line(l.ErrorMessage) }

func letterLink(engine, rowKey Text) string {
	return lettersPath + "/" + urlpath.Escape(string(engine)) + "/" + urlpath.Escape(string(rowKey))
}

type letterList struct {
	Items []letterItem `json:"items"`
	Token string       `json:"continuationToken"`
}

// letterCounts are the numbers of dead letters per engine.
type letterCounts struct {
	Items []struct {
		Engine  Text  `json:"engine"`
		Pending int64 `json:"pending"`
	} `json:"items"`
}

func (c letterCounts) engines() (names []Text) {
	for _, i := range c.Items {
		names = append(names, i.Engine)
	}
	return slices.Clip(names)
}

// askCounts requests the numbers of dead letters per engine for a form.
func (v *visit) askCounts(ctx context.Context, counts *letterCounts) error {
	return v.aside(func(v *visit) error { return v.api.get(ctx, "/api/dlq/counts", nil, counts) })
}

// both runs two requests concurrently.
func both(one, other func() error) error {
	var errs [2]error
	var wait sync.WaitGroup
	wait.Go(func() { errs[0] = one() })
	wait.Go(func() { errs[1] = other() })
	wait.Wait()
	return errors.Join(errs[:]...)
}

// letters lists dead letters.
func letters(ctx context.Context, v *visit) (page, error) {
	query := v.r.URL.Query()
	p := lettersPage{Filter: filterOf(query), Checked: query.Get("select") == selectPage, token: query.Get("continuationToken")}
	asked := p.Filter.query()
	if token := query.Get("continuationToken"); token != "" {
		asked.Set("continuationToken", token)
		p.First = p.Filter.List()
	}
	var list letterList
	var counts letterCounts
	err := both(func() error { return v.api.get(ctx, "/api/dlq", asked, &list) }, func() error { return v.askCounts(ctx, &counts) })
	p.Items, p.Engines = list.Items, counts.engines()
	out := page{template: "letters", title: "Dead letters", model: &p, live: Soon}
	out.elsewhere = v.list("dlq", "list")
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
	} else if err != nil {
		return page{}, err
	}
	if list.Token != "" {
		next := p.Filter.without("")
		next.Set("continuationToken", list.Token)
		p.Next = address(lettersPath, next)
	}
	return out, nil
}

// badFilter finds the error of a filter, which a page shows above its form.
func badFilter(err error) (*apiError, bool) {
	e, ok := asAPIError(err)
	return e, ok && e.Status == http.StatusBadRequest
}

// causesPage shows dead letters by cause.
type causesPage struct {
	Filter  filter
	Engines []Text
	causesList
	Problem Text
}

// causesList are groups of dead letters, the largest first. If they are grouped from a list that is cut after the
// newest, Complete is false.
type causesList struct {
	Items    []cause `json:"items"`
	Examined int     `json:"examined"`
	Complete bool    `json:"complete"`
}

func (l causesList) empty() bool { return len(l.Items) == 0 }

// link gives each cause the address of its dead letters.
func (l causesList) link(filter url.Values) {
	for n, c := range l.Items {
		query := url.Values{"errorSignature": {string(c.Signature)}}
		for name, values := range filter {
			query[name] = values
		}
		l.Items[n].Link = address(lettersPath, query)
	}
}

// cause is the common error of dead letters.
type cause struct {
	Signature    Text       `json:"errorSignature"`
	Count        int        `json:"count"`
	Engines      []Text     `json:"engines"`
	FirstFailure time.Time  `json:"firstFailureAtUtc"`
	LastFailure  time.Time  `json:"lastFailureAtUtc"`
	Sample       letterItem `json:"sample"`
	// Link is the address of their list.
	Link string `json:"-"`
}

// causes groups dead letters.
func causes(ctx context.Context, v *visit) (page, error) {
	p := causesPage{Filter: filterOf(v.r.URL.Query())}
	p.Filter.values.Del("errorSignature")
	p.Filter.values.Del("assignee")
	p.Filter.Signature = ""
	var counts letterCounts
	err := both(func() error { return v.api.get(ctx, "/api/dlq/groups", p.Filter.query(), &p.causesList) },
		func() error { return v.askCounts(ctx, &counts) })
	p.Engines = counts.engines()
	out := page{template: "causes", title: "Dead letters by cause", model: &p, live: Late}
	out.elsewhere = v.list("dlq", "groups")
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
	} else if err != nil {
		return page{}, err
	}
	p.link(p.Filter.values)
	return out, nil
}
