package console_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
)

const openHistory = console.Root + "/history"

// upload sends a history as the page that opens one does.
func (b bench) upload(t *testing.T, history string, as accesstest.Caller) *httptest.ResponseRecorder {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	if err := w.WriteField("text", history); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, openHistory, &body)
	r.Host = "app.example"
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	as.Sign(r)
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, r)
	return rec
}

// Somebody downloads the history of a run, and opens it where the run is not: he sees the same, marked as offline, without anything
// that could be done, and nothing of it is there afterwards.
func TestHistoryIsOpenedElsewhere(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "work-1", "")
	const path = runs + "/ask-work-1"
	status, history := b.Do(http.MethodGet, path+"/history", "", ann("Reader").Sign)
	if status != http.StatusOK || !strings.Contains(history, `"format": "roundhouse-history"`) {
		t.Fatalf("%d %s", status, history)
	}
	elsewhere := newWaiting(t, "work-2", "")
	rec := elsewhere.upload(t, history, ann("Reader"))
	text := rec.Body.String()
	for _, want := range []string{"Offline:", "ask-work-1", "9007199254740993", `data-status="Running"`, "<rect", "ActivityScheduled", "decision"} {
		if rec.Code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d: the page has no %q", rec.Code, want)
		}
	}
	for _, not := range []string{runs + "/ask-work-1", `class="commands"`, "correlationId=work-1", ">now</text>"} {
		if strings.Contains(text, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if status, _ := elsewhere.Do(http.MethodGet, path, "", ann("Reader").Sign); status != http.StatusNotFound {
		t.Errorf("afterwards it is there: %d", status)
	}
	if rec := elsewhere.upload(t, `{"id": "a"}`, ann("Reader")); rec.Code != http.StatusUnprocessableEntity || !strings.Contains(rec.Body.String(), "is no history") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// Who may not see orchestrations opens none, and of another tenant's there is no history.
func TestHistoryNeedsThePermission(t *testing.T) {
	t.Parallel()
	b := newWaiting(t, "secret-of-blue", accesstest.ID("blue"))
	pat := accesstest.Caller{Tenant: "home", Object: "pat", Name: "pat@example.com"}
	if rec := b.upload(t, `{}`, pat); rec.Code != http.StatusForbidden {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if status, _ := b.Do(http.MethodGet, openHistory, "", pat.Sign); status != http.StatusForbidden {
		t.Errorf("the page: %d", status)
	}
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	status, text := b.Do(http.MethodGet, runs+"/ask-secret-of-blue/history", "", red.Sign)
	if _, none := b.Do(http.MethodGet, runs+"/nothing/history", "", red.Sign); status != http.StatusNotFound || told(text) != told(none) {
		t.Errorf("%d %s", status, text)
	}
}
