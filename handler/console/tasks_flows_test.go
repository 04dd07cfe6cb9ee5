package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/orchestrator"
)

const taskList = console.Root + "/tasks"

const approvalForm = `{"type": "object", "required": ["approved"], "additionalProperties": false, "properties": {
	"approved": {"type": "boolean", "title": "Start the update"}, "days": {"type": "integer", "minimum": 1}, "why": {"type": "string"}}}`

// newAsking is an app with an engine that asks approvers, and has one run of a tenant that waits for them.
func newAsking(t *testing.T, settings map[string]string, tenant string) bench {
	t.Helper()
	keep := orchestrator.NewActivity("keep", func(_ context.Context, answer json.RawMessage) (json.RawMessage, error) { return answer, nil })
	run := func(ctx *orchestrator.Context, r engine.Request[string]) (json.RawMessage, error) {
		answer, err := orchestrator.AskPerson[json.RawMessage](ctx, orchestrator.HumanTask{Name: "approve update", Roles: []string{"approver"}, TenantID: r.TenantID,
			Payload: map[string]string{"update": r.Input}, Form: json.RawMessage(approvalForm), Due: time.Hour}).Await()
		if err != nil {
			return nil, err
		}
		return keep.Call(ctx, answer.Output).Await()
	}
	b := bench{Host: handlertest.New(t, handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: "update", Queue: "update-queue", Orchestrator: engine.Orchestrate("update", run), Operations: []orchestrator.AnyActivity{keep},
			Schedules: []engine.Schedule{{Name: "nightly", Cron: "0 0 3 * * *"}}}}, nil
	}}, settings)}
	b.Send("update-queue", `{"correlationId": "work-1", "tenantId": "`+tenant+`", "input": "secret plan of blue"}`)
	b.Deliver()
	return b
}

// approver is somebody who may claim what newAsking asks for.
func approver(tenant, name string) accesstest.Caller {
	return accesstest.Caller{Tenant: tenant, Object: name, Name: name + "@example.com", AppRoles: []string{"approver"}}
}

const work1 = taskList + "/update-work-1/1-1"

// Somebody finds a task, takes it, is told what is wrong with an answer, and answers: under that name, once, and the run goes on.
func TestTaskIsAnswered(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure(), "")
	ada := approver("home", "ada")
	if status, text := b.Do(http.MethodGet, taskList+"?view=claim", "", ada.Sign); status != http.StatusOK || !strings.Contains(text, work1) || strings.Contains(text, "not you") {
		t.Fatalf("to claim: %d %s", status, text)
	}
	if _, text := b.Do(http.MethodGet, taskList, "", ada.Sign); strings.Contains(text, work1) {
		t.Error("nobody has it, and it is shown as hers")
	}
	claim := b.form(t, work1, ada)
	for range 2 { // the second time, it is hers already
		if rec := b.post(t, work1+"/claim", claim, ada); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != work1+"?done=claimed" {
			t.Fatalf("claim: %d to %s: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
		}
	}
	if _, text := b.Do(http.MethodGet, taskList, "", ada.Sign); !strings.Contains(text, work1) {
		t.Errorf("what she has is not shown as hers: %s", text)
	}
	form := b.form(t, work1+"/complete", ada)
	form.Set("f0", "0")
	form.Set("f1", "0")
	form.Set("note", "looks right")
	if rec := b.post(t, work1+"/complete", form, ada); rec.Code != http.StatusUnprocessableEntity || !strings.Contains(rec.Body.String(), "minimum") || !strings.Contains(rec.Body.String(), "looks right") {
		t.Errorf("an answer that the form does not allow: %d %s", rec.Code, rec.Body)
	}
	form.Set("f1", "7")
	for range 2 {
		if rec := b.post(t, work1+"/complete", form, ada); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != work1+"?done=completed" {
			t.Fatalf("complete: %d: %s", rec.Code, rec.Body)
		}
	}
	b.Deliver()
	if got := b.Outcome("update-work-1"); string(got.Output) != `{"approved":true,"days":7}` {
		t.Errorf("the run: %+v", got)
	}
	done := map[string]bool{}
	for _, act := range b.acts(t, ada) {
		done[act] = true
	}
	if !done["ada@example.com claim Done"] || !done["ada@example.com complete Done"] {
		t.Errorf("audit log: %v", done)
	}
	_, text := b.Do(http.MethodGet, work1+"?done=completed", "", ann("Reader").Sign)
	for _, want := range []string{">Completed</span>", "ada@example.com", "looks right", "&#34;days&#34;: 7", "The task is completed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// Whoever has a task gives it to somebody else, who puts it back; a form that was opened before does nothing any more.
func TestTaskIsHandedOn(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure(), "")
	ada, bo := approver("home", "ada"), approver("home", "bo")
	old := b.form(t, work1+"/complete", bo)
	b.post(t, work1+"/claim", b.form(t, work1, ada), ada)
	assign := b.form(t, work1+"/assign", ada)
	assign.Set("assignee", bo.ID())
	assign.Set("assigneeName", "Bo")
	for range 2 {
		if rec := b.post(t, work1+"/assign", assign, ada); rec.Code != http.StatusSeeOther {
			t.Fatalf("assign: %d %s", rec.Code, rec.Body)
		}
	}
	old.Set("f0", "1")
	if rec := b.post(t, work1+"/complete", old, bo); rec.Code != http.StatusPreconditionFailed || !strings.Contains(rec.Body.String(), `value="1" selected`) {
		t.Errorf("an old form: %d %s", rec.Code, rec.Body)
	}
	if rec := b.post(t, work1+"/release", url.Values{"key": {"k"}}, ada); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "Bo has the task") {
		t.Errorf("released by somebody else: %d %s", rec.Code, rec.Body)
	}
	if rec := b.post(t, work1+"/release", b.form(t, work1+"/release", bo), bo); rec.Code != http.StatusSeeOther {
		t.Errorf("release: %d %s", rec.Code, rec.Body)
	}
	outsider := accesstest.Caller{Tenant: "home", Object: "eve", Name: "eve@example.com"}
	if rec := b.post(t, work1+"/claim", url.Values{"key": {"k"}}, outsider); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "of which you have none") {
		t.Errorf("claimed without the role: %d %s", rec.Code, rec.Body)
	}
}

// Of tasks of another tenant, somebody sees and changes nothing, whatever the role.
func TestForeignTenantHasNoTasks(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure(), accesstest.ID("blue"))
	red := approver("red", "mallory")
	if status, text := b.Do(http.MethodGet, work1, "", approver("blue", "bea").Sign); status != http.StatusOK || !strings.Contains(text, "secret plan") {
		t.Fatalf("the tenant itself: %d %s", status, text)
	}
	for path, want := range map[string]int{taskList: 200, taskList + "?view=claim": 200, taskList + "?view=all&tenantId=" + accesstest.ID("blue"): 200,
		work1: 404, work1 + "/claim": 404, work1 + "/complete": 404, work1 + "/assign": 404, work1 + "/release": 404} {
		status, text := b.Do(http.MethodGet, path, "", red.Sign)
		if status != want || strings.Contains(text, "secret plan") || strings.Contains(text, work1) || strings.Contains(text, "approve update") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, act := range []string{"claim", "release", "assign", "complete"} {
		if rec := b.post(t, work1+"/"+act, url.Values{"key": {"k"}, "f0": {"0"}, "assignee": {red.ID()}}, red); rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d", act, rec.Code)
		}
	}
	if _, text := b.Do(http.MethodGet, work1, "", approver("blue", "bea").Sign); !strings.Contains(text, ">Created</span>") {
		t.Errorf("the task has changed: %s", text)
	}
}

// Who did what is there for those who may see it, and everybody sees what he may do himself.
func TestAuditAndMe(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure(), "")
	ada := approver("home", "ada")
	b.post(t, work1+"/claim", b.form(t, work1, ada), ada)
	const log = console.Root + "/audit"
	for path, want := range map[string]bool{log: true, log + "?target=" + url.QueryEscape("tasks/update-work-1/1-1"): true, log + "?principal=" + url.QueryEscape(ada.ID()): true,
		log + "?target=other": false, log + "?principal=" + url.QueryEscape(ann("").ID()): false, log + "?toDate=2020-01-01": false} {
		if status, text := b.Do(http.MethodGet, path, "", ann("Administrator").Sign); status != http.StatusOK || strings.Contains(text, "ada@example.com") != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := b.Do(http.MethodGet, log, "", ada.Sign); status != http.StatusForbidden || strings.Contains(text, "update-work-1") {
		t.Errorf("the log for somebody without the permission: %d", status)
	}
	_, text := b.Do(http.MethodGet, console.Root+"/me", "", ada.Sign)
	for _, want := range []string{ada.ID(), "approver", "<td><code>tasks.act</code></td><td>claim and answer human tasks, as their roles and assignee allow</td><td>yes</td>", "You need the permission <code>platform.read</code>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q: %s", want, text)
		}
	}
	if _, text := b.Do(http.MethodGet, console.Root+"/me", "", ann("Reader").Sign); !strings.Contains(text, `<span class="chip" data-status="alive">`) {
		t.Errorf("what runs: %s", text)
	}
}
