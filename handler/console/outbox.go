package console

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/durations"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

const (
	outboxPath = Root + "/outbox"
	eventPath  = outboxPath + "/:tenant/:id"
)

// eventFilters are the names of the filters of events, in the addresses of the console and of the API.
func eventFilters() []string {
	return []string{"status", "tenant", "eventType", "correlationId", "fromDate", "toDate"}
}

// eventFilter selects events of the outbox, by the parameters of the address.
type eventFilter struct {
	Status, Tenant, EventType, CorrelationID, From, To string

	values url.Values
}

func eventFilterOf(query url.Values) eventFilter {
	f := eventFilter{values: url.Values{}}
	for _, name := range eventFilters() {
		if value := query.Get(name); value != "" && (name != "status" || value != anyStatus) {
			f.values.Set(name, value)
		}
	}
	get := f.values.Get
	f.Status, f.Tenant, f.EventType, f.CorrelationID, f.From, f.To = get("status"), get("tenant"), get("eventType"), get("correlationId"), get("fromDate"), get("toDate")
	if f.Status == "" {
		f.Status = anyStatus
	}
	return f
}

// Statuses returns the options of the form. Failed events are pending, too.
func (eventFilter) Statuses() []string {
	return []string{anyStatus, "pending", "failed", "processed", "skipped", "dead"}
}

// Narrowed reports whether a filter is set.
func (f eventFilter) Narrowed() bool { return len(f.values) > 0 }

// List returns the address of the list of the filter.
func (f eventFilter) List() string { return address(outboxPath, f.values) }

// query returns the filter, with a token of the list if set.
func (f eventFilter) query(token string) url.Values {
	out := url.Values{}
	for name, values := range f.values {
		out[name] = values
	}
	if token != "" {
		out.Set("continuationToken", token)
	}
	return out
}

// outboxPage is the outbox in numbers, and a page of the list of its events.
type outboxPage struct {
	Filter      eventFilter
	Numbers     part[outboxNumbers]
	Circuits    part[circuitList]
	Backlog     part[backlogList]
	Items       []eventItem
	Next, First string
	// Problem is the error of the filter.
	Problem Text
}

// outboxNumbers are the outbox in numbers. Throughput and FailureRatio are those of the answering process.
type outboxNumbers struct {
	Backlog           int     `json:"backlogSize"`
	FailedPending     int     `json:"failedPending"`
	OldestSeconds     float64 `json:"oldestAgeSeconds"`
	Throughput        float64 `json:"throughput"`
	FailureRatio      float64 `json:"failureRatio"`
	Dead              int     `json:"dead"`
	Misconfigured     int     `json:"misconfigured"`
	Misconfigurations []Text  `json:"misconfigurations"`
}

func (n outboxNumbers) empty() bool { return n.Backlog == 0 && n.Dead == 0 }

// Oldest returns the age of the oldest pending event, "" without one.
func (n outboxNumbers) Oldest() string {
	if n.Backlog == 0 {
		return ""
	}
	return span(durations.Of(n.OldestSeconds * float64(time.Second)))
}

// Rate returns the deliveries of this process per second.
func (n outboxNumbers) Rate() string { return fmt.Sprintf("%.2f in a second", n.Throughput) }

// Failed returns the share of its failed attempts.
func (n outboxNumbers) Failed() string { return fmt.Sprintf("%.0f %%", 100*n.FailureRatio) }

// Link returns the address of the page of an event.
func (e eventItem) Link() string { return eventLink(e.TenantID, e.ID) }

// Line returns the error in short.
func (e eventItem) Line() Text { return line(e.LastError) }

func eventLink(tenant, id Text) string {
	return outboxPath + "/" + urlpath.Escape(string(tenant)) + "/" + urlpath.Escape(string(id))
}

// showOutbox shows the state of the outbox, and lists events.
func showOutbox(ctx context.Context, v *visit) (page, error) {
	query := v.r.URL.Query()
	p := outboxPage{Filter: eventFilterOf(query)}
	token := query.Get("continuationToken")
	if token != "" {
		p.First = p.Filter.List()
	}
	var list eventList
	err := both(func() error { return v.api.get(ctx, "/api/workflow/outbox", p.Filter.query(token), &list) }, func() error {
		return v.aside(func(v *visit) error {
			return both(func() error {
				p.Numbers = ask[outboxNumbers](ctx, v, access.PlatformRead, "/api/workflow/outbox/metrics", nil)
				p.Circuits = ask[circuitList](ctx, v, access.PlatformRead, "/api/workflow/outbox/circuits", nil)
				return nil
			}, func() error {
				p.Backlog = ask[backlogList](ctx, v, access.OutboxRead, "/api/workflow/outbox/backlog", url.Values{"tenant": p.Filter.values["tenant"]})
				return nil
			})
		})
	})
	p.Items = list.Items
	out := page{template: "outbox", title: "Outbox", model: &p, live: Soon}
	out.elsewhere = v.list("outbox", "list")
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
	} else if err != nil {
		return page{}, err
	}
	if list.Token != "" {
		p.Next = address(outboxPath, p.Filter.query(list.Token))
	}
	return out, nil
}
