package console

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

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
	var asked url.Values
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/operations" {
			asked = r.URL.Query()
		}
		typical().with(answers{"/api/operations": list()}).ServeHTTP(w, r)
	})
	c := newConsole(t, api, access.Control{EasyAuth: true})
	for query, want := range map[string]string{"": "", "?status=any": "", "?status=Open&by=a+b": "by=a+b&status=Open", "?status=Paused&continuationToken=x": "continuationToken=x&status=Paused"} {
		if get(t, c, operationsPath+query); asked.Encode() != want {
			t.Errorf("%s asks for %q, want %q", query, asked.Encode(), want)
		}
	}
}

// What is paused is looked at again only by who has just asked to resume it.
func TestRefreshOfPaused(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 14, 0, 0, 0, time.UTC)
	o := operation{Status: "Paused", CreatedAt: now.Add(-time.Hour)}
	if got := refreshAfter(o, false, now); got != 0 {
		t.Errorf("paused: %v", got)
	}
	if got := refreshAfter(o, true, now); got != PollSoon {
		t.Errorf("resumed: %v", got)
	}
}
