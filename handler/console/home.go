package console

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

// homePage shows work for operators, running work, and the last day.
type homePage struct {
	Letters     part[causesList]
	Stalled     part[stalledList]
	Events      part[eventList]
	Mine        part[homeTasks]
	Overdue     part[homeTasks]
	Credentials part[credentialList]
	Health      part[healthReport]
	Runs        part[stalledList]
	Operations  part[operations]
	Results     part[daySeries]
	Failures    part[daySeries]
	// Pollers are those with problems.
	Pollers part[pollerTroubles]
	// Begin has instructions for a new app, nil once something has run.
	Begin *beginning
}

// Quiet reports whether nothing needs attention, as far as the user may see.
func (h homePage) Quiet() bool {
	for _, p := range []interface{ quiet() bool }{h.Letters, h.Stalled, h.Events, h.Mine, h.Overdue, h.Credentials, h.Pollers, h.Health} {
		if !p.quiet() {
			return false
		}
	}
	return true
}

// fresh reports whether nothing has run here, by the last day and the running work.
func (h homePage) fresh() bool {
	for _, p := range []interface{ quiet() bool }{h.Letters, h.Runs, h.Results, h.Failures} {
		if !p.quiet() {
			return false
		}
	}
	return true
}

// beginning has the instructions for a new app.
type beginning struct {
	Queue   Text
	Command Text
}

// part is the result of one API request: parts of a page fail separately.
type part[T interface{ empty() bool }] struct {
	Data T
	// Missing is the permission without which no request was sent, and Failed the error; "" for none.
	Missing access.Permission
	Failed  Text
}

func (p part[T]) quiet() bool { return p.Missing == "" && p.Failed == "" && p.Data.empty() }

// ask fills a part.
func ask[T interface{ empty() bool }](ctx context.Context, v *visit, need access.Permission, path string, query url.Values) (p part[T]) {
	if !v.may(need) {
		p.Missing = need
		return p
	}
	if err := v.api.get(ctx, path, query, &p.Data); err != nil {
		p.Failed = Text(err.Error())
	}
	return p
}

// stalledList are orchestrations with an unusable stored state.
type stalledList struct {
	Items []stalledItem `json:"items"`
	Token string        `json:"continuationToken"`
}

func (l stalledList) empty() bool { return len(l.Items) == 0 }

type stalledItem struct {
	ID           Text      `json:"id"`
	Orchestrator Text      `json:"orchestrator"`
	UpdatedAt    time.Time `json:"updatedAtUtc"`
}

// Link returns the address of its page.
func (s stalledItem) Link() string { return orchestrationLink(s.ID) }

// eventList are dead events of the outbox.
type eventList struct {
	Items []eventItem `json:"items"`
	Token string      `json:"continuationToken"`
}

func (l eventList) empty() bool { return len(l.Items) == 0 }

type eventItem struct {
	ID            Text      `json:"id"`
	TenantID      Text      `json:"tenantId"`
	State         string    `json:"status"`
	RetryCount    int       `json:"retryCount"`
	EventType     Text      `json:"eventType"`
	CreatedAt     time.Time `json:"createdAt"`
	LastError     Text      `json:"lastErrorSnippet"`
	CorrelationID Text      `json:"correlationId"`
}

// Timeline returns the address of the timeline of the event's work, "" if unknown.
func (e eventItem) Timeline() string { return timelineOf(e.CorrelationID) }

// homeTasks are open human tasks.
type homeTasks struct {
	Items []taskItem `json:"items"`
	Token string     `json:"continuationToken"`
}

func (l homeTasks) empty() bool { return len(l.Items) == 0 }

// credentialList are secrets and certificates that expire soon, or have expired.
type credentialList struct {
	Items []struct {
		Engine    Text      `json:"engine"`
		Name      Text      `json:"name"`
		ExpiresAt time.Time `json:"expiresAtUtc"`
		Expired   bool      `json:"expired"`
	} `json:"items"`
	Token string `json:"continuationToken"`
}

func (l credentialList) empty() bool { return len(l.Items) == 0 }

const (
	// shortList is the number of rows in a part of the home page.
	shortList = "5"
	// partTime bounds the page's wait for a part.
	partTime = 5 * time.Second
)

// home shows work for operators. All parts are requested concurrently.
func home(ctx context.Context, v *visit) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	var h homePage
	now := v.console.config.Now().UTC().Format(time.RFC3339)
	kept := new(*v) // the counts of a day are cached for minutes, so they are not news
	kept.api = v.api.unnoted()
	var wait sync.WaitGroup
	for _, fill := range []func(){
		func() {
			h.Letters = ask[causesList](ctx, v, access.DeadLettersRead, "/api/dlq/groups", url.Values{"status": {"Pending"}, "limit": {shortList}})
			h.Letters.Data.link(url.Values{})
		},
		func() {
			h.Stalled = ask[stalledList](ctx, v, access.OrchestrationsRead, "/api/orchestrations", url.Values{"status": {"Stalled"}, "limit": {shortList}})
		},
		func() {
			h.Runs = ask[stalledList](ctx, v, access.OrchestrationsRead, "/api/orchestrations", url.Values{"status": {"Running"}, "limit": {shortList}})
		},
		func() {
			h.Events = ask[eventList](ctx, v, access.OutboxRead, "/api/workflow/outbox", url.Values{"status": {"dead"}, "pageSize": {shortList}})
		},
		func() {
			h.Mine = ask[homeTasks](ctx, v, access.TasksRead, "/api/tasks", url.Values{"assignee": {string(v.me.ID)}, "limit": {shortList}})
		},
		func() {
			h.Overdue = ask[homeTasks](ctx, v, access.TasksRead, "/api/tasks", url.Values{"dueBefore": {now}, "limit": {shortList}})
		},
		func() {
			h.Credentials = ask[credentialList](ctx, v, access.PlatformRead, "/api/credentials", url.Values{"limit": {shortList}})
		},
		func() {
			h.Operations = ask[operations](ctx, v, access.OperationsRead, "/api/operations", url.Values{"status": {"Open"}, "limit": {shortList}})
		},
		func() { h.Health = askHealth(ctx, v) },
		func() { h.Pollers = askPollers(ctx, v) },
		func() { h.Results = fill(ctx, kept, access.HistoryRead, resultsOfDay) },
		func() { h.Failures = fill(ctx, kept, access.DeadLettersRead, lettersOfDay) },
	} {
		wait.Go(fill)
	}
	wait.Wait()
	if h.fresh() {
		h.Begin = begin(ctx, v)
	}
	return page{template: "home", title: "Home", model: h, live: Late}, nil
}

// fill fills a part with the result of a function.
func fill[T interface{ empty() bool }](ctx context.Context, v *visit, need access.Permission, bring func(context.Context, *visit) (T, error)) (p part[T]) {
	if !v.may(need) {
		p.Missing = need
		return p
	}
	var err error
	if p.Data, err = bring(ctx, v); err != nil {
		p.Failed = Text(err.Error())
	}
	return p
}

// begin returns the message for the first engine that accepts messages. Without the permission to list engines, it is
// any.
func begin(ctx context.Context, v *visit) *beginning {
	out := &beginning{Command: "roundhouse send ENGINE --correlation-id first"}
	var list struct {
		Engines []struct {
			Name  string `json:"name"`
			Queue Text   `json:"queue"`
		} `json:"engines"`
	}
	if v.may(access.PlatformRead) && v.api.get(ctx, "/api/engines", nil, &list) == nil {
		for _, e := range list.Engines {
			if e.Queue != "" {
				out.Queue, out.Command = e.Queue, commandLine("roundhouse", "send", e.Name, "--correlation-id", "first")
				break
			}
		}
	}
	return out
}
