package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
)

// look asks whether a page has news, as somebody.
func (b bench) look(t *testing.T, path, tag, age string, as accesstest.Caller) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Host = "app.example"
	r.Header.Set("If-None-Match", tag)
	r.Header.Set("Cache-Control", age)
	as.Sign(r)
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, r)
	return rec
}

// In a whole app, each page that looks for news hears that there are none, and a list hears of what has come.
func TestNews(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.bury(t, "work-1", "", "the vault answered 503")
	b.Send("store-queue", `{"correlationId": "work-9", "input": 7}`)
	b.Deliver()
	admin := ann("Administrator")
	for _, path := range []string{"", "/dead-letters", "/dead-letters/causes", "/orchestrations", "/tasks", "/outbox", "/schedules", "/registry", "/audit"} {
		tag := b.get(t, console.Root+path, admin).Header().Get("ETag")
		if rec := b.look(t, console.Root+path, tag, "no-cache", admin); rec.Code != http.StatusNotModified || tag == "" {
			t.Errorf("%s with the tag %q: %d", path, tag, rec.Code)
		}
	}
	tag := b.get(t, letters, admin).Header().Get("ETag")
	b.bury(t, "work-2", "", "the vault answered 504")
	rec := b.look(t, letters, tag, "no-cache", admin)
	if rec.Code != http.StatusOK || rec.Header().Get("ETag") == tag || !strings.Contains(rec.Body.String(), "the vault answered 504") {
		t.Errorf("what has come: %d with the tag %s", rec.Code, rec.Header().Get("ETag"))
	}
}

// A tag opens nothing: a foreign tenant that has one sees its own list, who has no permission is refused, and who is nobody is told to sign in.
func TestTagsOpenNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.bury(t, "work-1", "", "the vault answered 503")
	b.bury(t, "work-2", accesstest.ID("red"), "the vault answered 504")
	tag := b.get(t, letters, ann("Operator")).Header().Get("ETag")
	if rec := b.look(t, letters, tag, "max-age=30", ann("Operator")); rec.Code != http.StatusNotModified {
		t.Fatalf("%d", rec.Code)
	}
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	for _, age := range []string{"no-cache", "max-age=30"} {
		rec := b.look(t, letters, tag, age, red)
		if rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), "work-1") || !strings.Contains(rec.Body.String(), "work-2") {
			t.Errorf("a foreign tenant, with %s: %d", age, rec.Code)
		}
	}
	if rec := b.look(t, letters, tag, "max-age=30", ann("Participant")); rec.Code != http.StatusForbidden {
		t.Errorf("without the permission: %d", rec.Code)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, letters, nil)
	r.Header.Set("If-None-Match", tag)
	r.Header.Set("Cache-Control", "max-age=30")
	rec := httptest.NewRecorder()
	if b.ServeHTTP(rec, r); rec.Code != http.StatusUnauthorized {
		t.Errorf("nobody: %d", rec.Code)
	}
}
