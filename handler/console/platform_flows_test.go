package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
)

// A schedule is run once however often its form is sent, by who may do it, and what it led to is at hand.
func TestScheduleIsRun(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure(), "")
	const run = console.Root + "/schedules/update/run"
	_, text := b.Do(http.MethodGet, console.Root+"/schedules", "", ann("Operator").Sign)
	if !strings.Contains(text, `href="`+run+`?schedule=nightly"`) {
		t.Fatalf("the schedules: %s", text)
	}
	form := b.form(t, run+"?schedule=nightly", ann("Operator"))
	to := b.post(t, run+"?schedule=nightly", form, ann("Operator")).Header().Get("Location")
	if again := b.post(t, run+"?schedule=nightly", form, ann("Operator")).Header().Get("Location"); again != to || !strings.Contains(to, "done=run") || !strings.Contains(to, "correlationId=") {
		t.Fatalf("to %q, then to %q", to, again)
	}
	b.Deliver()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := b.Do(http.MethodGet, console.Root+"/timeline?correlationId="+url.QueryEscape(target.Query().Get("correlationId")), "", ann("Reader").Sign); status != http.StatusOK || strings.Count(text, "<bdi>Run update-") != 1 {
		t.Errorf("timeline: %d %s", status, text)
	}
	if _, text := b.Do(http.MethodGet, to, "", ann("Operator").Sign); !strings.Contains(text, "It was sent.") {
		t.Errorf("afterwards: %s", text)
	}
	if got := b.acts(t, ann("")); len(got) == 0 || got[0] != "ann@example.com run Done" {
		t.Errorf("audit log: %q", got)
	}
	if rec := b.post(t, run+"?schedule=nightly", form, ann("Reader")); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "schedules.run") {
		t.Errorf("by a reader: %d %s", rec.Code, rec.Body)
	}
	if rec := b.post(t, run+"?schedule=weekly", form, ann("Operator")); rec.Code != http.StatusNotFound {
		t.Errorf("no such schedule: %d", rec.Code)
	}
}

// An instance is drained and resumed, under the name of whoever did it; a form of before does nothing, and another tenant sees nothing.
func TestInstanceIsDrained(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure(), "")
	if status, text := b.Do(http.MethodPost, "/api/registry", `{"instanceId": "blue-1", "tenantId": "`+accesstest.ID("blue")+`", "ring": "canary"}`, ann("Operator").Sign); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	const blue = console.Root + "/registry/blue-1"
	if _, text := b.Do(http.MethodGet, console.Root+"/registry", "", ann("Reader").Sign); !strings.Contains(text, blue) {
		t.Errorf("the registry: %s", text)
	}
	form := b.form(t, blue+"/drain", ann("Operator"))
	form.Set("forSeconds", "14400")
	form.Set("reason", "the disk is changed")
	for range 2 {
		if rec := b.post(t, blue+"/drain", form, ann("Operator")); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != blue+"?done=drained" {
			t.Fatalf("drain: %d %s", rec.Code, rec.Body)
		}
	}
	if _, text := b.Do(http.MethodGet, blue, "", ann("Operator").Sign); !strings.Contains(text, ">Drained</span>") || !strings.Contains(text, "in 3 hours") || !strings.Contains(text, blue+"/resume") {
		t.Errorf("drained: %s", text)
	}
	form.Set("forSeconds", "-1")
	if rec := b.post(t, blue+"/drain", form, ann("Operator")); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "the disk is changed") {
		t.Errorf("for no time: %d %s", rec.Code, rec.Body)
	}
	resume := b.form(t, blue+"/resume", ann("Operator"))
	for range 2 {
		if rec := b.post(t, blue+"/resume", resume, ann("Operator")); rec.Code != http.StatusSeeOther {
			t.Fatalf("resume: %d %s", rec.Code, rec.Body)
		}
	}
	if rec := b.post(t, blue+"/drain", url.Values{"key": {"k"}}, ann("Reader")); rec.Code != http.StatusForbidden {
		t.Errorf("by a reader: %d", rec.Code)
	}
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	for path, want := range map[string]int{console.Root + "/registry": 200, blue: 404, blue + "/drain": 404, blue + "/resume": 404} {
		if status, text := b.Do(http.MethodGet, path, "", red.Sign); status != want || strings.Contains(text, "blue-1") || strings.Contains(text, "canary") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	done := strings.Join(b.acts(t, ann("")), "; ")
	if !strings.Contains(done, "ann@example.com drain Done") || !strings.Contains(done, "ann@example.com resume Done") {
		t.Errorf("audit log: %s", done)
	}
}
