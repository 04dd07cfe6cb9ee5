package console

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

// homePage is what needs a person now.
type homePage struct {
	Letters part[causesList]
	Stalled part[stalledList]
	Events  part[eventList]
}

// Quiet says that nothing needs anybody, as far as whoever looks may see.
func (h homePage) Quiet() bool {
	for _, p := range []interface{ quiet() bool }{h.Letters, h.Stalled, h.Events} {
		if !p.quiet() {
			return false
		}
	}
	return true
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

// shortList is how many rows a part of the home page has.
const shortList = "5"

// home shows what needs a person.
func home(ctx context.Context, v *visit) (page, error) {
	var h homePage
	var wait sync.WaitGroup
	wait.Go(func() {
		h.Letters = ask[causesList](ctx, v, access.DeadLettersRead, "/api/dlq/groups", url.Values{"status": {"Pending"}, "limit": {shortList}})
		h.Letters.Data.link(url.Values{})
	})
	wait.Go(func() {
		h.Stalled = ask[stalledList](ctx, v, access.OrchestrationsRead, "/api/orchestrations", url.Values{"status": {"Stalled"}, "limit": {shortList}})
	})
	wait.Go(func() {
		h.Events = ask[eventList](ctx, v, access.OutboxRead, "/api/workflow/outbox", url.Values{"status": {"dead"}, "pageSize": {shortList}})
	})
	wait.Wait()
	return page{template: "home", title: "Home", model: h, live: Late}, nil
}
