package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
)

const eventID = "4836ba57-7901-8e73-bca6-2fd75c8542b6"

func eventData(more map[string]any) map[string]any {
	d := map[string]any{"id": eventID, "tenantId": "acme", "eventType": "key.rotated", "status": "dead", "createdAt": "2026-11-26T12:00:00Z", "retryCount": 2, "lastErrorSnippet": "status 410: gone for good",
		"error": "status 410: gone for good", "destination": "crm", "correlationId": "rotation-7", "deadAt": "2026-11-26T13:00:00Z", "deadLetter": "e1-20261126T130000.000000Z", "idempotencyKey": eventID,
		"payloadSize": 40, "payload": map[string]any{"days": 7}, "attempts": []any{
			map[string]any{"at": "2026-11-26T12:01:00Z", "node": "node-a", "destination": "crm", "tookMs": 1200, "status": 503, "sentAs": "signature k1", "error": "status 503"},
			map[string]any{"at": "2026-11-26T13:00:00Z", "node": "node-b", "destination": "crm", "tookMs": 80, "status": 410, "error": "status 410: gone for good"}}}
	for name, value := range more {
		d[name] = value
		if value == nil {
			delete(d, name)
		}
	}
	return d
}

func hostileEvent() map[string]any {
	return eventData(map[string]any{"id": evil + "%2F..", "tenantId": "a/../b", "eventType": evil, "status": evil, "lastErrorSnippet": evil + strings.Repeat("x", 500), "error": evil + turning, "destination": turning,
		"correlationId": evil, "deadLetter": evil, "idempotencyKey": evil, "orderKey": turning, "skippedBy": evil, "processedAt": "9999-01-01T00:00:00Z", "waitsSince": "0001-01-02T00:00:00Z",
		"payload": huge, "attempts": []any{map[string]any{"at": "0001-01-01T00:00:00Z", "node": evil, "destination": evil, "tookMs": -5, "status": 99999, "sentAs": evil, "error": turning}}})
}

// circuitData is a destination that more nodes hold back than are named.
func circuitData(destination string) map[string]any {
	return list(map[string]any{"destination": destination, "sinceUtc": "2026-11-26T13:50:00Z", "untilUtc": "2026-11-26T14:01:00Z", "nodesLeftOut": 3, "nodes": []any{
		map[string]any{"node": "web-2-411", "sinceUtc": "2026-11-26T13:50:00Z", "untilUtc": "2026-11-26T14:01:00Z", "failures": 8, "reason": "status 503", "seenUtc": "2026-11-26T13:59:30Z"},
		map[string]any{"node": destination, "sinceUtc": "2026-11-26T13:55:00Z", "untilUtc": "2026-11-26T14:02:00Z", "failures": 5, "reason": destination, "seenUtc": "2026-11-26T13:55:10Z"}}})
}

// backlogData is more than the page shows.
func backlogData(tenant, destination string) map[string]any {
	items := []any{map[string]any{"tenantId": tenant, "destination": destination, "waiting": 500, "failed": 8, "atLeast": true, "oldestAtUtc": "2026-11-26T13:44:00Z"},
		map[string]any{"tenantId": tenant, "waiting": 3, "failed": 0, "oldestAtUtc": "2026-11-26T13:59:00Z"}}
	for i := range maxBacklogRows {
		items = append(items, map[string]any{"tenantId": fmt.Sprint("tenant-", i), "destination": "crm", "waiting": 1, "failed": 1, "oldestAtUtc": "2026-11-26T13:59:00Z"})
	}
	of := list(items...)
	of["more"] = true
	return of
}

// outboxOf is an API with events, the first of which has a page.
func outboxOf(base answers, events ...map[string]any) answers {
	var items []any
	for _, e := range events {
		items = append(items, e)
	}
	of := list(items...)
	if len(events) > 0 {
		of["continuationToken"] = "next page"
	}
	out := base.with(answers{"/api/workflow/outbox": of, "/api/workflow/outbox/metrics": map[string]any{"backlogSize": 16, "failedPending": 8, "oldestAgeSeconds": 960, "throughput": 0.0333, "failureRatio": 0.6667, "dead": 8,
		"misconfigured": 1, "misconfigurations": []string{"no route for " + events[0]["eventType"].(string)}}, "/api/workflow/outbox/circuits": circuitData(events[0]["destination"].(string)),
		"/api/workflow/outbox/backlog": backlogData(events[0]["tenantId"].(string), events[0]["destination"].(string))})
	for _, e := range events {
		out["/api/workflow/outbox/"+e["tenantId"].(string)+"/"+e["id"].(string)] = e
	}
	return out
}

// outboxPages are the pages of this file.
func outboxPages() map[string]shown {
	dead := outboxOf(typical(), eventData(nil), eventData(map[string]any{"id": "e2", "status": "pending", "retryCount": 0, "lastErrorSnippet": ""}))
	empty := nothing().with(answers{"/api/workflow/outbox/metrics": map[string]any{"backlogSize": 0}, "/api/workflow/outbox/circuits": list(), "/api/workflow/outbox/backlog": list()})
	bad := outboxOf(hostile(), hostileEvent())
	link, evilLink := eventLink("acme", eventID), eventLink("a/../b", Text(evil+"%2F.."))
	processed := outboxOf(typical(), eventData(map[string]any{"status": "processed", "processedAt": "2026-11-26T13:30:00Z", "revivedAt": "2026-11-26T13:20:00Z", "deadAt": "0001-01-01T00:00:00Z", "error": "", "payloadSize": 0, "payload": nil}))
	return map[string]shown{
		"outbox_empty":   at(empty, outboxPath, 200),
		"outbox_typical": at(dead, outboxPath+"?status=dead&tenant=acme&continuationToken=x", 200),
		"outbox_hostile": at(bad, outboxPath+"?status=%3Cscript%3E&tenant=%22%3E%3Cscript%3E&eventType=%22&correlationId=%3Cscript%3E", 200),
		"outbox_reader": at(dead.with(answers{"/api/me": someone("olga@example.com", access.Self, access.OutboxRead),
			"/api/workflow/outbox/metrics": refusal{403, "Forbidden", "nobody asks"}, "/api/workflow/outbox/circuits": refusal{403, "Forbidden", "nobody asks"}}), outboxPath, 200),
		"outbox_unanswered": at(dead.with(answers{"/api/workflow/outbox/metrics": refusal{503, "ServiceUnavailable", "Storage did not answer in time."},
			"/api/workflow/outbox/circuits": refusal{503, "ServiceUnavailable", "Storage did not answer in time."}, "/api/workflow/outbox/backlog": refusal{503, "ServiceUnavailable", "Storage did not answer in time."}}), outboxPath, 200),
		"outbox_wrong":         at(dead.with(answers{"/api/workflow/outbox": refusal{400, "InvalidParameter", "Use a time such as 2026-11-21."}}), outboxPath+"?fromDate=soon", 400),
		"event_typical":        at(dead, link, 200),
		"event_reader":         at(dead.with(answers{"/api/me": reader()}), link, 200),
		"event_processed":      at(processed, link+"?done=replay", 200),
		"event_hostile":        at(bad, evilLink+"?done=%3Cscript%3E", 200),
		"event_none":           at(nothing(), link, 404),
		"event_retry_typical":  at(dead, link+"/retry", 200),
		"event_retry_settled":  at(processed, link+"/retry", 200),
		"event_retry_hostile":  at(bad, evilLink+"/retry", 200),
		"event_skip_typical":   at(dead, link+"/skip", 200),
		"event_skip_reader":    at(dead.with(answers{"/api/me": reader()}), link+"/skip", 200),
		"event_replay_typical": at(processed, link+"/replay", 200),
	}
}

// A form does what was asked for while the event is as it was looked at, and once.
func TestEventForms(t *testing.T) {
	t.Parallel()
	revived := map[string]any{"status": "pending", "revivedAt": "2026-11-26T13:30:00Z"}
	for name, test := range map[string]struct {
		event  map[string]any
		act    string
		seen   string
		asked  bool
		status int
	}{
		"retry":                            {nil, "retry", "first", true, 303},
		"skip":                             {nil, "skip", "first", true, 303},
		"replay of a second life":          {revived, "replay", "2026-11-26T13:30:00Z", true, 303},
		"retry for the second time":        {revived, "retry", "first", false, 303},
		"skip for the second time":         {map[string]any{"status": "skipped"}, "skip", "first", false, 303},
		"skip of what was let start over":  {revived, "skip", "first", false, 412},
		"a form that no page of it made":   {nil, "retry", "", false, 400},
		"retry of what was replayed again": {map[string]any{"status": "processed", "revivedAt": "2026-11-26T13:30:00Z"}, "retry", "first", false, 303},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := "/api/workflow/outbox/acme/" + eventID + "/" + test.act
			a := &calls{answers: outboxOf(typical(), eventData(test.event)).with(answers{path: map[string]any{}})}
			rec := send(t, newConsole(t, a, access.Control{EasyAuth: true}), eventLink("acme", eventID)+"/"+test.act, url.Values{"seen": {test.seen}})
			asked := false
			for _, r := range a.got {
				asked = asked || r.Method == http.MethodPost && r.URL.Path == path
			}
			if rec.Code != test.status || asked != test.asked || test.status == 303 && rec.Header().Get("Location") != eventLink("acme", eventID)+"?done="+test.act {
				t.Errorf("%d to %q, and the API was asked: %v", rec.Code, rec.Header().Get("Location"), asked)
			}
		})
	}
}
