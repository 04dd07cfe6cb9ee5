package handler_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// No answer shows another tenant's users the ids or names of the home tenant's users who acted on that tenant's
// data.
func TestOperatorsAreConcealed(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	m.home.Object, m.home.Name = "carol of home", "carol@home.example"
	things := m.things(t, m.home, "red")
	send := func(status int, method, path, body string) {
		t.Helper()
		if got, answer := m.Do(method, path, body, m.home.Sign); got != status {
			t.Fatalf("%s %s: %d, want %d: %s", method, path, got, status, answer)
		}
	}
	letter := strings.TrimSuffix(things["retry"][1], "/retry")
	send(200, "POST", letter+"/notes", `{"text":"looked at"}`)
	send(200, "POST", letter+"/claim", "{}")
	send(200, "POST", things["claim"][1], "{}")
	send(202, "POST", things["suspend"][1], `{"reason":"a look"}`)
	m.Deliver()
	send(202, "POST", things["resume"][1], `{"reason":"done"}`)
	m.Deliver()
	if _, ok := things["skip"]; ok {
		send(409, "POST", things["skip"][1], `{}`) // delivered
	}
	seen := 0
	look := func(method, path, body string) {
		status, answer := m.Do(method, path, body, m.red.Sign)
		if strings.Contains(answer, "platform operator") {
			seen++
		}
		for _, mark := range []string{m.home.ID(), strings.Split(m.home.ID(), "/")[1], m.home.Name} {
			if strings.Contains(strings.ToLower(answer), strings.ToLower(mark)) {
				t.Errorf("%s %s: %d has %s: %s", method, path, status, mark, answer)
			}
		}
	}
	crawl := func() {
		for name, thing := range things {
			if thing[0] == http.MethodGet {
				look(thing[0], thing[1], "")
				look(thing[0], strings.Replace(thing[1], "/api/", "/api/console/", 1), "")
			} else if strings.HasPrefix(name, "claim") || name == "complete" {
				look(thing[0], thing[1], bodyOf(name, thing[0]))
			}
		}
		for _, path := range append(lists(), letter, letter+"/claim", strings.TrimSuffix(things["claim"][1], "/claim"), "/api/console", "/api/console/tasks?view=all",
			"/api/console/timeline/red-waits", "/api/runtime/webhooks/durabletask/instances/shop-red-waits?showHistory=true&showHistoryOutput=true") {
			look(http.MethodGet, path, "")
			look(http.MethodPost, path, "{}")
		}
	}
	crawl()
	send(202, "POST", things["terminate"][1], `{"reason":"enough"}`)
	m.Deliver()
	send(200, "PATCH", letter, `{"status":"Resolved","resolutionNotes":"seen"}`)
	crawl()
	if seen < 8 {
		t.Errorf("operators are mentioned in %d answers only", seen)
	}
}

// Dead letters and tasks can only be assigned to people who can see them.
func TestAssignees(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	things := m.things(t, m.home, "red")
	for what, path := range map[string]string{"dead letter": strings.TrimSuffix(things["retry"][1], "/retry") + "/assign", "task": things["assign"][1]} {
		for n, c := range []struct {
			by       accesstest.Caller
			assignee string
			allowed  bool
		}{
			{m.red, m.home.ID(), false},
			{m.red, m.blue.ID(), false},
			{m.red, "ann", false},
			{m.red, "function-key", false},
			{m.red, tenantOf("red"), false},
			{m.red, tenantOf("red") + "/ann", false},
			{m.red, "{" + tenantOf("red") + "}/" + accesstest.ID("ann"), false},
			{m.home, m.blue.ID(), false},
			{m.home, m.red.ID(), true},
			{m.red, strings.ToUpper(m.red.ID()), true},
			{m.home, m.home.ID(), true},
		} {
			status, answer := m.Do(http.MethodPost, path, fmt.Sprintf(`{"assignee":%q,"assigneeName":"x"}`, c.assignee), c.by.Sign)
			if refused := status == http.StatusBadRequest; status != http.StatusOK && !refused || refused == c.allowed {
				t.Errorf("%s %d to %s: %d %s", what, n, c.assignee, status, answer)
			}
		}
	}
}

// newMarketOfTasks returns an app with a task for approvers, ask-c1, and a task without roles, ask-c2, of no tenant.
func newMarketOfTasks(t *testing.T) *handlertest.Host {
	t.Helper()
	app := handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		look := orchestrator.NewActivity("look", func(context.Context, string) (string, error) { return "", nil })
		run := func(ctx *orchestrator.Context, r engine.Request[[]string]) (string, error) {
			_, err := orchestrator.AskPerson[bool](ctx, orchestrator.HumanTask{Name: "approve", Roles: r.Input, Payload: "SECRET-PLAN"}).Await()
			return "", err
		}
		return []engine.Definition{{Name: "ask", Queue: "ask-queue", Orchestrator: engine.Orchestrate("ask", run), Operations: []orchestrator.AnyActivity{look}}}, nil
	}}
	h := handlertest.New(t, app, map[string]string{"WEBSITE_SITE_NAME": "ask", "WEBSITE_AUTH_ENABLED": "true", "ROUNDHOUSE_HOME_TENANT": accesstest.ID("home")})
	testenv.Must(registry.New(h.Tables, "").Create(t.Context(), registry.Instance{InstanceID: "i"}))(t)
	h.Send("ask-queue", `{"correlationId":"c1","instanceId":"i","input":["approver"]}`)
	h.Send("ask-queue", `{"correlationId":"c2","instanceId":"i","input":[]}`)
	h.Deliver()
	return h
}

// A token without a role cannot read contents of tasks for others, and cannot release a task of another assignee.
func TestTasksOfOthers(t *testing.T) {
	t.Parallel()
	m := newMarketOfTasks(t)
	path := "/api/tasks/" + url.PathEscape("ask-c1") + "/1-1"
	home := func(application bool, roles ...string) accesstest.Caller {
		return accesstest.Caller{Tenant: "home", Object: fmt.Sprint(roles, application), Name: "x", Application: application, AppRoles: roles}
	}
	ask := func(method, path string, who accesstest.Caller) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}"))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		who.Sign(r)
		rec := httptest.NewRecorder()
		m.ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}
	for name, c := range map[string]struct {
		who             accesstest.Caller
		approved, open  bool // reads a task for approvers, and one for everybody
		release, listed int
	}{
		"a guest without a role":        {home(false), false, true, 403, 200},
		"an application without a role": {home(true), false, false, 403, 200},
		"an approver":                   {home(false, "approver"), true, true, 200, 200},
		"an application that approves":  {home(true, "approver"), true, false, 200, 200},
		"a reader":                      {home(false, "Roundhouse.Reader"), true, true, 403, 200},
		"another tenant":                {accesstest.Caller{Tenant: "blue", Object: "b", Name: "b"}, false, false, 404, 200},
	} {
		for task, reads := range map[string]bool{path: c.approved, strings.Replace(path, "c1", "c2", 1): c.open} {
			if _, answer := ask(http.MethodGet, task, c.who); strings.Contains(answer, "SECRET-PLAN") != reads {
				t.Errorf("%s, %s: reads %v: %s", name, task, !reads, answer)
			}
			console := strings.Replace(task, "/api/", "/api/console/", 1)
			if _, page := ask(http.MethodGet, console, c.who); strings.Contains(page, "SECRET-PLAN") != reads {
				t.Errorf("%s, %s: reads %v", name, console, !reads)
			}
		}
		if status, answer := ask(http.MethodPost, path+"/release", c.who); status != c.release {
			t.Errorf("%s releases: %d %s", name, status, answer)
		}
		if status, answer := ask(http.MethodGet, "/api/tasks", c.who); status != c.listed || strings.Contains(answer, "SECRET-PLAN") {
			t.Errorf("%s lists: %d %s", name, status, answer)
		}
	}
}
