package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// caller returns the header of a caller whom the platform has authenticated.
func caller(name, tenant string, roles ...string) string {
	return accesstest.Caller{Tenant: tenant, Object: name, Name: name, AppRoles: roles}.Header()
}

// idOf returns the id of a caller.
func idOf(name, tenant string) string { return accesstest.Caller{Tenant: tenant, Object: name}.ID() }

const yesOrNo = `{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}},"additionalProperties":false}`

// question returns a task of a tenant's approvers.
func question(tenant string) orchestrator.HumanTask {
	return orchestrator.HumanTask{Name: "approve", Roles: []string{"approver"}, TenantID: accesstest.ID(tenant), Payload: map[string]int{"version": 2},
		Form: json.RawMessage(yesOrNo), Due: time.Hour}
}

// ask starts an orchestration that creates a task, and returns the task's path.
func (b *outboxBench) ask(t *testing.T, id string, h orchestrator.HumanTask) string {
	t.Helper()
	input, err := json.Marshal(h)
	testenv.OK(t, err)
	testenv.Must(b.runtime.Run(t.Context(), orchestrator.Start{Orchestrator: "hmac", ID: id, Input: input, CorrelationID: "c-" + id}))(t)
	return "/api/tasks/" + url.PathEscape(id) + "/1-1"
}

func (b *outboxBench) act(t *testing.T, task, action, body, as string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return b.person(t, as, http.MethodPost, task+"/"+action, body, headers...)
}

func (b *outboxBench) tasks(t *testing.T, query, as string) []string {
	t.Helper()
	rec := b.person(t, as, http.MethodGet, "/api/tasks"+query, "")
	return append([]string{}, each(data[list[taskItem]](t, rec).Items, func(i taskItem) string { return i.OrchestrationID })...)
}

// A task from the list to its orchestration's output.
func TestTaskIsTakenAndCompleted(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	target := b.ask(t, "a/1 é", question("red"))
	ann, bob := caller("ann", "red", "Approver"), caller("bob", "red", "approver")

	rec := b.get(t, target, "X-MS-CLIENT-PRINCIPAL", ann)
	d := data[taskDetail](t, rec)
	want := taskDetail{taskItem: taskItem{OrchestrationID: "a/1 é", TaskID: "1-1", Name: "approve", Engine: "hmac", CorrelationID: "c-a/1 é", TenantID: accesstest.ID("red"),
		Status: tasks.Created, Roles: []string{"approver"}}, Payload: []byte(`{"version":2}`), Form: []byte(yesOrNo),
		Events: []taskEvent{{Event: tasks.EventCreated, Roles: []string{"approver"}}}}
	if diff := cmp.Diff(want, d, cmp.AllowUnexported(taskDetail{}), cmpopts.IgnoreTypes(time.Time{})); diff != "" || !d.DueAtUtc.Equal(d.CreatedAtUtc.Add(time.Hour)) {
		t.Errorf("(-want +got):\n%s", diff)
	}
	seen := rec.Header().Get("ETag")
	if rec := b.act(t, target, "claim", "", ann, "If-Match", seen); rec.Code != http.StatusOK || data[taskDetail](t, rec).Assignee != idOf("ann", "red") || data[taskDetail](t, rec).AssigneeName != "ann" || rec.Header().Get("ETag") == seen {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	annID, bobID := idOf("ann", "red"), idOf("bob", "red")
	for _, step := range []struct {
		action, body, as string
		status           int
		assignee         string
	}{
		{"claim", "", ann, http.StatusOK, annID}, // a repeat
		{"claim", "", bob, http.StatusConflict, annID},
		{"reassign", `{"assignee":"` + bobID + `"}`, bob, http.StatusForbidden, annID},
		{"reassign", `{"assignee":"` + bobID + `","assigneeName":"bob","note":"he knows"}`, ann, http.StatusOK, bobID},
		{"release", `{}`, ann, http.StatusForbidden, bobID},
		{"release", `{"note":"he does not"}`, bob, http.StatusOK, ""},
		{"assign", `{"assignee":"` + strings.ToUpper(annID) + `"}`, bob, http.StatusOK, annID},
		{"complete", `{"output":{"approved":true}}`, bob, http.StatusConflict, annID},
	} {
		rec := b.act(t, target, step.action, step.body, step.as)
		now := data[taskDetail](t, b.get(t, target))
		if rec.Code != step.status || !strings.EqualFold(now.Assignee, step.assignee) { // ids are case-insensitive
			t.Errorf("%s %s: %d %s, then %q", step.action, step.body, rec.Code, rec.Body, now.Assignee)
		}
	}
	for range 2 { // the second time, it changes nothing
		rec = b.act(t, target, "complete", `{"output":{"approved":true},"note":"well"}`, ann)
		d = data[taskDetail](t, rec)
		if rec.Code != http.StatusOK || d.Status != tasks.Completed || d.EndedBy != annID || d.EndedByName != "ann" || string(d.Output) != `{"approved":true}` || rec.Header().Get("ETag") != "" {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
	b.drive(t)
	if out, err := b.runtime.Get(t.Context(), "a/1 é"); err != nil || string(out.Output) != `{"approved":true}` {
		t.Errorf("%+v, %v", out, err)
	}
	var events []tasks.EventKind
	for _, e := range data[taskDetail](t, b.get(t, target)).Events {
		events = append(events, e.Event)
	}
	testenv.Equal(t, "events", []tasks.EventKind{"created", "assigned", "reassigned", "released", "assigned", "completed"}, events)
	rec = b.act(t, target, "complete", `{"output":{"approved":false}}`, bob)
	if e := decode(t, rec).Error; rec.Code != http.StatusConflict || e.Code != codeTaskTaken || !strings.Contains(e.Message, "Completed since 2") || !strings.Contains(e.Message, "by ann") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// Forbidden and invalid requests return the right status, a documented code, and leave the task unchanged.
func TestTasksRefuse(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	target, platforms := b.ask(t, "a", question("red")), b.ask(t, "p", question(""))
	ann := caller("ann", "red", "approver")
	long := strings.Repeat("x", tasks.MaxOutput)
	for name, c := range map[string]struct {
		target, action, body, as, etag string
		status                         int
		code                           string
	}{
		"a wrong role":            {target, "claim", "", caller("eve", "red", "reader"), "", http.StatusForbidden, codeForbidden},
		"no role":                 {target, "complete", `{"output":{"approved":true}}`, caller("eve", "red"), "", http.StatusForbidden, codeForbidden},
		"another tenant":          {target, "claim", "", caller("eve", "blue", "approver"), "", http.StatusNotFound, codeNotFound},
		"another tenant reads":    {target, "", "", caller("eve", "blue", "approver"), "", http.StatusNotFound, codeNotFound},
		"the platform's":          {platforms, "claim", "", ann, "", http.StatusNotFound, codeNotFound},
		"no tenant":               {target, "claim", "", caller("ann", "", "approver"), "", http.StatusForbidden, codeForbidden},
		"an unreadable principal": {target, "claim", "", "e30", "", http.StatusForbidden, codeForbidden},
		"nobody":                  {target, "claim", "", caller("", "red", "approver"), "", http.StatusForbidden, codeForbidden},
		"an unknown task":         {"/api/tasks/a/1-9", "claim", "", ann, "", http.StatusNotFound, codeNotFound},
		"an unknown id":           {"/api/tasks/zz/1-1", "", "", ann, "", http.StatusNotFound, codeNotFound},
		"a hostile id":            {"/api/tasks/a/1-1-end", "", "", "", "", http.StatusNotFound, codeNotFound},
		"a hostile orchestration": {"/api/tasks/" + url.PathEscape("a' or 'a' eq 'a\x00\\#?/é") + "/1-1", "", "", "", "", http.StatusNotFound, codeNotFound},
		"another version":         {target, "claim", "", ann, `W/"other"`, http.StatusPreconditionFailed, codePrecondition},
		"against the form":        {target, "complete", `{"output":{"approved":"yes"}}`, ann, "", http.StatusUnprocessableEntity, codeInvalidOutput},
		"beside the form":         {target, "complete", `{"output":{"approved":true,"more":1}}`, ann, "", http.StatusUnprocessableEntity, codeInvalidOutput},
		"null":                    {target, "complete", `{"output":null}`, ann, "", http.StatusUnprocessableEntity, codeInvalidOutput},
		"an oversized answer":     {target, "complete", `{"output":"` + long + `"}`, ann, "", http.StatusRequestEntityTooLarge, codeBodyTooLarge},
		"an oversized body":       {target, "complete", `{"output":"` + strings.Repeat(long, 4) + `"}`, ann, "", http.StatusRequestEntityTooLarge, codeBodyTooLarge},
		"no answer":               {target, "complete", `{}`, ann, "", http.StatusBadRequest, codeInvalidParameter},
		"no JSON":                 {target, "complete", `{"output":`, ann, "", http.StatusBadRequest, codeInvalidBody},
		"an unknown member":       {target, "claim", `{"by":"bob"}`, ann, "", http.StatusBadRequest, codeInvalidBody},
		"a claim for another":     {target, "claim", `{"assignee":"bob"}`, ann, "", http.StatusBadRequest, codeInvalidParameter},
		"a claim with an answer":  {target, "claim", `{"output":1}`, ann, "", http.StatusBadRequest, codeInvalidParameter},
		"a claim with a note":     {target, "claim", `{"note":"x"}`, ann, "", http.StatusBadRequest, codeInvalidParameter},
		"to nobody":               {target, "assign", `{}`, ann, "", http.StatusBadRequest, codeInvalidParameter},
		"to a long name":          {target, "assign", `{"assignee":"` + strings.Repeat("x", tasks.MaxPerson+1) + `"}`, ann, "", http.StatusBadRequest, codeInvalidParameter},
		"a long note":             {target, "release", `{"note":"` + strings.Repeat("x", tasks.MaxNote+1) + `"}`, ann, "", http.StatusBadRequest, codeInvalidParameter},
		"another action":          {target, "destroy", "", ann, "", http.StatusNotFound, codeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, asked := http.MethodGet, c.target
			if c.action != "" {
				method, asked = http.MethodPost, c.target+"/"+c.action
			}
			expect(t, b.person(t, c.as, method, asked, c.body, "If-Match", c.etag), c.status, c.code, "")
			if d := data[taskDetail](t, b.get(t, target)); d.Status != tasks.Created || len(d.Events) != 1 {
				t.Errorf("it changed the task: %+v", d)
			}
		})
	}
}

// Lists have the selected tasks, and for callers of a tenant only the tenant's.
func TestListTasks(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for i, tenant := range []string{"red", "blue", "red", ""} {
		h := question(tenant)
		h.Due = time.Duration(4-i) * time.Hour
		if i == 2 {
			h.Roles, h.Assignee = nil, "Ann"
		}
		b.ask(t, fmt.Sprint("t", i), h)
	}
	ended := b.ask(t, "t4", question("red"))
	if rec := b.act(t, ended, "complete", `{"output":{"approved":true}}`, ""); rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	ann, keeper, home := caller("ann", "red", "approver"), caller("kim", "home", "keeper"), caller("kay", "home")
	red, blue := accesstest.ID("red"), accesstest.ID("blue")
	for _, c := range []struct {
		query, as string
		want      []string
	}{
		{"", "", []string{"t3", "t2", "t1", "t0"}},
		{"", keeper, []string{"t3", "t2", "t1", "t0"}},
		{"", home, []string{"t3", "t2", "t1", "t0"}},
		{"", ann, []string{"t2", "t0"}},
		{"?tenantId=" + blue, ann, []string{}},
		{"?tenantId=" + strings.ToUpper(red), ann, []string{"t2", "t0"}},
		{"?tenantId=" + blue, "", []string{"t1"}},
		{"?assignee=ANN", "", []string{"t2"}},
		{"?role=Approver", "", []string{"t3", "t1", "t0"}},
		{"?role=approver&tenantId=" + red, "", []string{"t0"}},
		{"?role=approver", ann, []string{"t0"}},
		{"?status=Assigned", "", []string{"t2"}},
		{"?status=Created&engine=hmac", "", []string{"t3", "t1", "t0"}},
		{"?status=Completed", ann, []string{"t4"}},
		{"?status=Canceled", "", []string{}},
		{"?engine=tls", "", []string{}},
		{"?dueBefore=" + time.Now().UTC().Add(150*time.Minute).Format(time.RFC3339), "", []string{"t3", "t2"}},
		{"?role=" + url.QueryEscape("' or 'a' eq 'a\x00"), "", []string{}},
	} {
		testenv.Equal(t, c.query, c.want, b.tasks(t, c.query, c.as))
	}
	page := data[list[taskItem]](t, b.get(t, "/api/tasks?limit=3"))
	if len(page.Items) != 3 || page.ContinuationToken == "" {
		t.Fatalf("%+v", page)
	}
	testenv.Equal(t, "second page", []string{"t0"}, b.tasks(t, "?limit=3&continuationToken="+page.ContinuationToken, ""))
	for query, code := range map[string]string{
		"?limit=3&role=x&continuationToken=" + page.ContinuationToken:                  codeInvalidToken,
		"?continuationToken=" + sealToken("x", "y"):                                    codeInvalidToken,
		"?continuationToken=" + sealToken("x", fingerprintOf("tasks", tasks.Filter{})): codeInvalidToken,
		"?status=Open":  codeInvalidParameter,
		"?engine=none":  codeInvalidParameter,
		"?dueBefore=no": codeInvalidParameter,
		"?limit=101":    codeInvalidParameter,
		"?role=" + strings.Repeat("x", tasks.MaxPerson+1): codeInvalidParameter,
	} {
		expect(t, b.get(t, "/api/tasks"+query), http.StatusBadRequest, code, "%.80s", query)
	}
	expect(t, b.get(t, "/api/tasks?continuationToken="+page.ContinuationToken, "X-MS-CLIENT-PRINCIPAL", ann), http.StatusBadRequest, "", "somebody else's token")
}

// Of two people who complete a task at the same time, one wins, and the other gets the winner and the time.
func TestTwoPeopleCompleteATask(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for round := range 20 {
		target := b.ask(t, fmt.Sprint("r", round), question("red"))
		var both sync.WaitGroup
		var recs [2]*httptest.ResponseRecorder
		for i, name := range []string{"ann", "bob"} {
			both.Go(func() {
				recs[i] = b.act(t, target, "complete", fmt.Sprintf(`{"output":{"approved":%v}}`, i == 0), caller(name, "red", "approver"))
			})
		}
		both.Wait()
		winner, loser := recs[0], recs[1]
		if winner.Code != http.StatusOK {
			winner, loser = loser, winner
		}
		won := data[taskDetail](t, winner)
		if winner.Code != http.StatusOK || loser.Code != http.StatusConflict || !strings.Contains(decode(t, loser).Error.Message, "by "+won.EndedByName) {
			t.Fatalf("%d %s, %d %s", winner.Code, winner.Body, loser.Code, loser.Body)
		}
		if d := data[taskDetail](t, b.get(t, target)); d.EndedBy != won.EndedBy || string(d.Output) != string(won.Output) {
			t.Errorf("%+v, but %+v", d, won)
		}
	}
}

// The keeper of the home tenant has the permissions of assignees.
func TestTheKeeperReassigns(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	h := question("red")
	h.Assignee = "ann"
	target := b.ask(t, "a", h)
	for who, want := range map[string]int{caller("kay", "home"): http.StatusForbidden, caller("eve", "red", "keeper"): http.StatusForbidden} {
		expect(t, b.act(t, target, "reassign", `{"assignee":"`+idOf("bob", "red")+`"}`, who), want, "", "")
	}
	if rec := b.act(t, target, "reassign", `{"assignee":"bob"}`, caller("kim", "home", "Keeper")); rec.Code != http.StatusOK || data[taskDetail](t, rec).Assignee != "bob" {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
