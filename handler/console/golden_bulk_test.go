package console

import (
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

// asksAgain is after how many seconds a page asks again, without scripts as with them; "" for never.
func asksAgain(page string) string {
	m := refreshes.FindStringSubmatch(page)
	if m == nil || !strings.Contains(page, `data-every="`+m[1]+`" data-follow>`) {
		return ""
	}
	return m[1]
}

// A form starts what it says, of what was looked at, and nothing when it was made by no page.
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
			var body strings.Builder
			var path, key string
			api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					path, key = r.URL.Path, r.Header.Get("Idempotency-Key")
					_ = r.Write(&body)
				}
				typical().with(answers{"/api/dlq/retry": operationData(nil), "/api/dlq/expire": operationData(nil)}).ServeHTTP(w, r)
			})
			form, err := url.ParseQuery(test.form)
			if err != nil {
				t.Fatal(err)
			}
			rec := send(t, newConsole(t, api, access.Control{EasyAuth: true}), test.path, form)
			if rec.Code != test.status || path != test.asks || !strings.HasSuffix(body.String(), test.body) {
				t.Errorf("%d; the API was asked for %q with %s", rec.Code, path, body.String())
			}
			if test.status == 303 && (key != "k" || rec.Header().Get("Location") != operationAt("12")) {
				t.Errorf("key %q, to %s", key, rec.Header().Get("Location"))
			}
		})
	}
}

// How many a cause has is known only if all were looked at.
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

// What is meant ends when it was looked at, unless it ended before.
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
