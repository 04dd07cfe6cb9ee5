package console

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

const operationID = "dead-letter-bulk-0d6b8a2e-6a55-5e4e-9d63-5b8f4d5e3c11"

func operationData(more map[string]any) map[string]any {
	d := map[string]any{"id": operationID, "kind": "dead-letter-bulk", "status": "Running", "correlationId": "request-7",
		"request":  map[string]any{"action": "retry", "engine": "hmac", "errorSignature": "ab12", "toDate": "2026-11-26T13:59:30Z", "by": "ada@example.com", "ratePerSecond": 10, "canary": 5, "canarySeconds": 60},
		"progress": map[string]any{"slices": 1, "done": 5, "passedOver": 1}, "createdAt": "2026-11-26T13:59:30Z", "lastUpdatedAt": "2026-11-26T13:59:45Z"}
	for name, value := range more {
		d[name] = value
	}
	return d
}

func hostileOperation() map[string]any {
	return operationData(map[string]any{"kind": evil, "status": evil, "correlationId": evil, "error": map[string]any{"code": evil, "message": evil + turning},
		"request": map[string]any{"action": evil, "status": evil, "tenant": turning, "eventType": evil, "correlationId": evil, "engine": evil, "instanceId": turning, "errorSignature": evil,
			"orchestrator": evil, "idPrefix": evil, "by": evil, "fromDate": "0001-01-02T00:00:00Z", "toDate": "9999-01-01T00:00:00Z", "createdTo": "9999-01-01T00:00:00Z", "olderThanDays": 36500}})
}

func operationAt(of string, more ...string) string {
	query := url.Values{"of": {of}}
	for _, m := range more {
		query.Set("refresh", m)
	}
	return address(operationLink(operationID), query)
}

// bulkPages are the pages of this file.
func bulkPages() map[string]shown {
	operations := func(o map[string]any) answers { return typical().with(answers{"/api/operations/" + operationID: o}) }
	ended := map[string]any{"status": "Succeeded", "endedAt": "2026-11-26T13:59:50Z", "progress": map[string]any{"done": 11, "passedOver": 1}}
	twoCauses := typical().with(answers{"/api/dlq/groups": causesData(causeOf(letterData(nil)), causeOf(letterData(map[string]any{"errorSignature": "cd34"})))})
	return map[string]shown{
		"bulk_retry_empty":    at(nothing(), retryAllPath+"?engine=hmac", 200, ""),
		"bulk_retry_typical":  at(twoCauses, retryAllPath+"?engine=hmac&errorSignature=ab12&fromDate=2026-11-01&toDate=2099-01-01", 200, ""),
		"bulk_retry_reader":   at(typical().with(answers{"/api/me": reader()}), retryAllPath, 200, ""),
		"bulk_retry_hostile":  at(hostile(), retryAllPath+"?engine=%3Cscript%3E&instanceId=%22%3E%3Cscript%3E&fromDate=%22&toDate=%3C%E2%80%AEx", 200, ""),
		"bulk_retry_id":       at(typical(), retryAllPath+"?correlationId=rotation-7", 400, ""),
		"bulk_expire_typical": at(typical(), expireAllPath+"?instanceId=instance-1&toDate=2026-11-26", 200, ""),
		"bulk_expire_any":     at(typical(), expireAllPath+"?status=any", 400, ""),
		"operation_typical":   at(operations(operationData(nil)), operationAt("12"), 200, "3"),
		"operation_old":       at(operations(operationData(map[string]any{"createdAt": "2026-11-26T13:00:00Z"})), operationAt(""), 200, "15"),
		"operation_still":     at(operations(operationData(nil)), operationAt("12", "off"), 200, ""),
		"operation_ended":     at(operations(operationData(ended)), operationAt("12"), 200, ""),
		"operation_canary": at(operations(operationData(map[string]any{"status": "Failed", "endedAt": "2026-11-26T13:59:50Z", "progress": map[string]any{"done": 5, "returned": 2},
			"error": map[string]any{"code": "CanaryFailed", "message": "What was tried first came back."}})), operationAt("-1"), 200, ""),
		"operation_reader":  at(operations(operationData(map[string]any{"createdAt": "2026-11-24T13:00:00Z"})).with(answers{"/api/me": reader()}), operationAt("12"), 200, ""),
		"operation_hostile": at(operations(hostileOperation()), operationAt(evil), 200, ""),
		"operation_none":    at(nothing(), operationAt("12"), 404, ""),
	}
}

var refreshes = regexp.MustCompile(`<noscript><meta http-equiv="refresh" content="(\d+)"></noscript>`)

// asksAgain returns a page's polling interval in seconds, without scripts as with them; "" for never.
func asksAgain(page string) string {
	m := refreshes.FindStringSubmatch(page)
	if m == nil || !strings.Contains(page, `data-every="`+m[1]+`" data-follow>`) {
		return ""
	}
	return m[1]
}

// A form starts the displayed operation, and a form that is from no page starts none.
func TestBulkForms(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path, form, body string
		status           int
		asks             string
	}{
		"retry": {retryAllPath, "key=k&engine=hmac&toDate=2026-11-26T14:00:00Z&canary=5&canarySeconds=60&ratePerSecond=&of=12", `{"canary":5,"canarySeconds":60,"engine":"hmac","toDate":"2026-11-26T14:00:00Z"}`, 303, "/api/dlq/retry"},
		"retry without a canary": {retryAllPath, "key=k&errorSignature=ab12&toDate=2026-11-26&canary=&canarySeconds=60&ratePerSecond=7&of=12",
			`{"errorSignature":"ab12","ratePerSecond":7,"toDate":"2026-11-26"}`, 303, "/api/dlq/retry"},
		"expire":                {expireAllPath, "key=k&instanceId=i&fromDate=2026-11-01&toDate=2026-11-26&of=12", `{"fromDate":"2026-11-01","instanceId":"i","olderThanDays":0,"toDate":"2026-11-26"}`, 303, "/api/dlq/expire"},
		"expire of no page":     {expireAllPath, "key=k&of=12", `{}`, 303, "/api/dlq/expire"},
		"a number that is none": {retryAllPath, "key=k&toDate=2026-11-26&canary=many", "", 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			form, err := url.ParseQuery(test.form)
			if err != nil {
				t.Fatal(err)
			}
			a, want := &calls{answers: typical().with(answers{"/api/dlq/retry": operationData(nil), "/api/dlq/expire": operationData(nil)})}, ""
			if test.status == 303 {
				want = "POST " + test.asks + ` key "k" of "": ` + test.body
			}
			rec := a.sentBy(t, at(nil, test.path, test.status).sends(form), want)
			if to := rec.Header().Get("Location"); test.status == 303 && to != operationAt("12") {
				t.Errorf("to %s", to)
			}
		})
	}
}

// The number of a cause is known only if all dead letters were read.
func TestCount(t *testing.T) {
	t.Parallel()
	full := causesList{Complete: true, Items: []cause{{Signature: "a", Count: 3}, {Signature: "b", Count: 4}}}
	for signature, want := range map[string]int{"": 7, "a": 3, "c": 0} {
		if n, atLeast := full.count(signature); n != want || atLeast {
			t.Errorf("%q: %d, %v", signature, n, atLeast)
		}
	}
	if _, atLeast := (causesList{Complete: false}).count(""); !atLeast {
		t.Error("what was not looked at is counted")
	}
	if _, atLeast := (causesList{Complete: true, Items: make([]cause, mostCauses)}).count(""); !atLeast {
		t.Error("causes that were left out are counted")
	}
}

// The filter ends at the time of its page, unless it ended before.
func TestFrozen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 14, 0, 0, 0, time.UTC)
	for until, want := range map[string]Text{"": "2026-11-26T14:00:00Z", "2026-11-26": "2026-11-26", "2026-11-27": "2026-11-26T14:00:00Z", "2026-11-26T14:00:01Z": "2026-11-26T14:00:00Z",
		"2026-11-26T13:59:59Z": "2026-11-26T13:59:59Z", "soon": "soon"} {
		if got, _ := frozen(until, now); got != want {
			t.Errorf("%q: %q", until, got)
		}
	}
}

// operationPages are the pages of this file.
func operationPages() map[string]shown {
	listed := func(items ...any) answers {
		return typical().with(answers{"/api/operations": map[string]any{"items": items, "continuationToken": "next page"}})
	}
	ended := operationData(map[string]any{"status": "Failed", "endedAt": "2026-11-26T13:59:50Z", "kind": "outbox-bulk", "progress": map[string]any{"done": 5, "returned": 2},
		"request": map[string]any{"action": "replay", "tenant": "t1", "by": "bo@example.com"}})
	paused := operationData(map[string]any{"status": "Paused"})
	one := func(o map[string]any) answers { return typical().with(answers{"/api/operations/" + operationID: o}) }
	return map[string]shown{
		"operations_empty":    at(nothing().with(answers{"/api/operations": list()}), operationsPath, 200, ""),
		"operations_typical":  at(listed(operationData(nil), ended), operationsPath+"?status=Open&by=ada", 200, ""),
		"operations_none":     at(nothing().with(answers{"/api/operations": list()}), operationsPath+"?status=Paused", 200, ""),
		"operations_rare":     at(listed(), operationsPath+"?by=bo", 200, ""),
		"operations_behind":   at(nothing().with(answers{"/api/operations": list()}), operationsPath+"?continuationToken=x", 200, ""),
		"operations_hostile":  at(listed(hostileOperation()), address(operationsPath, url.Values{"status": {evil}, "by": {turning + evil}}), 200, ""),
		"operations_wrong":    at(typical().with(answers{"/api/operations": refusal{400, "InvalidParameter", "Use one of NotStarted, Running."}}), operationsPath+"?status=Done", 400, ""),
		"operation_paused":    at(one(paused), operationAt("12"), 200, ""),
		"operation_resumed":   at(one(paused), operationLink(operationID)+"?asked=resume", 200, "3"),
		"operation_no_resume": at(one(paused).with(answers{"/api/me": reader()}), operationAt(""), 200, ""),
	}
}

// The filter of the page is that of the API.
func TestOperationFilter(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{"": "", "?status=any": "", "?status=Open&by=a+b": "by=a+b&status=Open", "?status=Paused&continuationToken=x": "continuationToken=x&status=Paused"} {
		a := &calls{answers: typical().with(answers{"/api/operations": list()})}
		if at(a, operationsPath+query, 200).ask(t); a.got[0].URL.Path != "/api/operations" || a.got[0].URL.RawQuery != want {
			t.Errorf("%s asks for %s, want %q", query, a.got[0].URL, want)
		}
	}
}

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

// A form acts on the displayed life of an event only, and once.
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
