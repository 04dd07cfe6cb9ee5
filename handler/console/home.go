package console

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

// homePage is what needs a person now, what runs, and how a day was.
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
	// Pollers are those that something is wrong with.
	Pollers part[pollerTroubles]
	// Begin says how to begin, nil where something has run already.
	Begin *beginning
}

// Quiet says that nothing needs anybody, as far as whoever looks may see.
func (h homePage) Quiet() bool {
	for _, p := range []interface{ quiet() bool }{h.Letters, h.Stalled, h.Events, h.Mine, h.Overdue, h.Credentials, h.Pollers, h.Health} {
		if !p.quiet() {
			return false
		}
	}
	return true
}

// fresh says that nothing has run here, as far as the last day and what runs now tell.
func (h homePage) fresh() bool {
	for _, p := range []interface{ quiet() bool }{h.Letters, h.Runs, h.Results, h.Failures} {
		if !p.quiet() {
			return false
		}
	}
	return true
}

// beginning is what to do where nothing has run yet.
type beginning struct {
	Queue   Text
	Command Text
}

// part is what one question to the API brought: parts of a page fail by themselves.
type part[T interface{ empty() bool }] struct {
	Data T
	// Missing is the permission for want of which nothing was asked, and Failed why there is no answer; "" for none.
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

// stalledList are orchestrations whose stored state cannot be gone on with.
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

// Link is the address of its page.
func (s stalledItem) Link() string { return orchestrationLink(s.ID) }

// eventList are events of the outbox that nobody delivers any more.
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

// Timeline is the address of what happened to the work that sent the event, "" if that is not known.
func (e eventItem) Timeline() string { return timelineOf(e.CorrelationID) }

// homeTasks are human tasks that wait.
type homeTasks struct {
	Items []taskItem `json:"items"`
	Token string     `json:"continuationToken"`
}

func (l homeTasks) empty() bool { return len(l.Items) == 0 }

// credentialList are secrets and certificates that expire soon, or have.
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
	// shortList is how many rows a part of the home page has.
	shortList = "5"
	// partTime is for how long the page waits for a part.
	partTime = 5 * time.Second
)

// home shows what needs a person. All parts are asked for at the same time.
func home(ctx context.Context, v *visit) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	var h homePage
	now := v.console.config.Now().UTC().Format(time.RFC3339)
	kept := new(*v) // the counts of a day are kept for minutes, so that they are no news
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

// fill fills a part with what a function brings.
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

// begin says what to send to the first engine that takes messages. Without the permission to know them, it is any.
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
