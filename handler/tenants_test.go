package handler_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// order is the input of the engine "shop": it determines the outcome.
type order struct {
	Fail bool `json:"fail"`
	// Of is the tenant whose goods are ordered, by default that of the instance.
	Of string `json:"of"`
}

// shop returns an app with an engine that publishes an event, creates a task, and fails on request, and with one
// without an owner function.
func shop() handler.App {
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		look := orchestrator.NewActivity("look", func(context.Context, string) (string, error) { return "", nil })
		count := orchestrator.NewActivity("count", func(context.Context, string) (string, error) { return "", nil })
		run := func(ctx *orchestrator.Context, r engine.Request[order]) (string, error) {
			if r.Input.Fail {
				return "", orchestrator.Permanent(fmt.Errorf("no order of %s", r.TenantID))
			}
			if _, err := look.Call(ctx, "").Await(); err != nil {
				return "", err
			}
			owner := r.TenantID
			if owner == "" {
				owner = "platform"
			}
			if err := ctx.Publish(orchestrator.Publication{TenantID: owner, Type: "ordered", Payload: json.RawMessage("{}")}); err != nil {
				return "", err
			}
			_, err := orchestrator.AskPerson[bool](ctx, orchestrator.HumanTask{Name: "approve"}).Await()
			return "done", err
		}
		owner := func(_ context.Context, m engine.Message, instanceTenant string) (string, error) {
			var o order
			_ = json.Unmarshal(m.Input, &o) // the run reports the problem
			return cmp.Or(o.Of, instanceTenant), nil
		}
		return []engine.Definition{
			{Name: "shop", Queue: "shop-queue", Orchestrator: engine.Orchestrate("shop", run), Operations: []orchestrator.AnyActivity{look}, Owner: owner},
			{Name: "depot", Queue: "depot-queue", Orchestrator: engine.Orchestrate("depot", run), Operations: []orchestrator.AnyActivity{count}},
		}, nil
	}}
}

// market is a shop in Azure with orders of three tenants and of none: one that waits for a task and one that failed,
// each.
type market struct {
	*handlertest.Host
	home, red, blue accesstest.Caller
}

// owners returns the tenants of the market; "" is the platform.
func owners() []string { return []string{"red", "blue", "home", ""} }

func tenantOf(word string) string {
	if word == "" {
		return ""
	}
	return accesstest.ID(word)
}

func newMarket(t *testing.T) market { return newMarketWith(t, "", func(*handler.Config) {}) }

// newMarketWith is newMarket with a limit for callers, and with a configuration that change can change.
func newMarketWith(t *testing.T, callerLimit string, change func(*handler.Config)) market {
	t.Helper()
	m := market{Host: handlertest.NewWith(t, shop(), map[string]string{"WEBSITE_SITE_NAME": "shop", "WEBSITE_AUTH_ENABLED": "true", "ROUNDHOUSE_HOME_TENANT": accesstest.ID("home"),
		"ROUNDHOUSE_ROLES": `{"otherTenants": "operator"}`, "ROUNDHOUSE_CALLER_LIMIT": callerLimit}, change)}
	person := func(tenant string) accesstest.Caller {
		return accesstest.Caller{Tenant: tenant, Object: "ann of " + tenant, Name: "ann@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	}
	m.home, m.red, m.blue = person("home"), person("red"), person("blue")
	reg := registry.New(m.Tables, "")
	for _, word := range owners() {
		name := word
		if name == "" {
			name = "none"
		}
		testenv.Must(reg.Create(t.Context(), registry.Instance{InstanceID: "instance-" + name, TenantID: tenantOf(word)}))(t)
		for what, input := range map[string]string{"waits": `{}`, "fails": `{"fail":true}`} {
			m.Send("shop-queue", fmt.Sprintf(`{"correlationId":"%s-%s","instanceId":"instance-%s","tenantId":%q,"input":%s}`, name, what, name, strings.ToUpper(tenantOf(word)), input))
		}
	}
	m.Deliver()
	return m
}

// get sends a request as a caller.
func (m market) get(t *testing.T, path string, who accesstest.Caller) (int, string) {
	t.Helper()
	return m.Do(http.MethodGet, path, "", who.Sign)
}

// lists returns all lists of all entry points, with all their filters.
func lists() []string {
	return []string{"/api/history", "/api/history?engine=shop", "/api/dlq", "/api/dlq?status=Pending", "/api/dlq/groups", "/api/dlq/counts", "/api/tasks", "/api/tasks?role=",
		"/api/orchestrations", "/api/orchestrations?status=Running", "/api/orchestrations?orchestrator=shop", "/api/orchestrations?idPrefix=shop-",
		"/api/orchestrations?fromDate=2020-01-01", "/api/workflow/outbox", "/api/workflow/outbox?status=pending",
		"/api/timeline/red-waits", "/api/timeline/red-fails", "/api/timeline/blue-waits", "/api/timeline/none-fails",
		"/api/runtime/webhooks/durabletask/instances", "/api/runtime/webhooks/durabletask/instances?instanceIdPrefix=shop-&showInput=false"}
}

// A caller of a tenant finds no other tenant's data in any list or page, and all its own; the home tenant finds
// everything.
func TestListsOfTenants(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	names := map[string]string{"red": "red-", "blue": "blue-", "home": "home-", "none": "none-"}
	for _, path := range lists() {
		all, ofHome := m.get(t, strings.TrimSuffix(path, "role="), m.home)
		if all != http.StatusOK {
			t.Fatalf("%s: %d %s", path, all, ofHome)
		}
		for word, who := range map[string]accesstest.Caller{"red": m.red, "blue": m.blue} {
			status, answer := m.get(t, strings.TrimSuffix(path, "role="), who)
			hidden := strings.HasPrefix(path, "/api/timeline/") && !strings.HasPrefix(path, "/api/timeline/"+word)
			if status != http.StatusOK && (!hidden || status != http.StatusNotFound) || hidden && status == http.StatusOK {
				t.Errorf("%s for %s: %d %s", path, word, status, answer)
			}
			for other, mark := range names {
				if other != word && (strings.Contains(answer, `"`+mark+"waits") || strings.Contains(answer, mark+"fails\"") || strings.Contains(strings.ToLower(answer), tenantOf(other)) && other != "none") {
					t.Errorf("%s shows %s to %s: %s", path, other, word, answer)
				}
			}
			mine := strings.Count(ofHome, names[word]+"waits") + strings.Count(ofHome, names[word]+"fails")
			if got := strings.Count(answer, names[word]+"waits") + strings.Count(answer, names[word]+"fails"); got != mine && !strings.Contains(path, "groups") &&
				!strings.Contains(path, "outbox") { // whose tenants are exact, and these are in another case than the callers'
				t.Errorf("%s shows %d of %d to %s: %s", path, got, mine, word, answer)
			}
		}
	}
	for who, want := range map[*accesstest.Caller]int{&m.red: 1, &m.home: 4} {
		_, answer := m.get(t, "/api/dlq/counts?engine=shop", *who)
		if !strings.Contains(answer, fmt.Sprintf(`"pending":%d,`, want)) {
			t.Errorf("%s, want %d", answer, want)
		}
	}
}

// things returns the addresses of one tenant's objects, from its lists.
func (m market) things(t *testing.T, who accesstest.Caller, word string) map[string][2]string {
	t.Helper()
	var found struct {
		Data struct {
			Items []struct{ RowKey, CorrelationID, OrchestrationID, TaskID, TenantID, ID string }
		}
	}
	read := func(path string) {
		found.Data.Items = nil
		if _, answer := m.get(t, path, who); json.Unmarshal([]byte(answer), &found) != nil {
			t.Fatal(answer)
		}
	}
	id := "shop-" + word + "-waits"
	all := map[string][2]string{
		"GET orchestration":  {http.MethodGet, "/api/orchestrations/" + id},
		"GET rounds":         {http.MethodGet, "/api/orchestrations/" + id + "/rounds"},
		"event":              {http.MethodPost, "/api/orchestrations/" + id + "/events/go"},
		"purge":              {http.MethodDelete, "/api/orchestrations/shop-" + word + "-fails"},
		"terminate instance": {http.MethodPost, "/api/runtime/webhooks/durabletask/instances/" + id + "/terminate"}, // the others: durable.TestAnotherTenant
	}
	for _, command := range []string{"suspend", "resume", "rewind", "restart", "cancel", "terminate"} {
		all[command] = [2]string{http.MethodPost, "/api/orchestrations/" + id + "/" + command}
	}
	read("/api/history")
	for _, item := range found.Data.Items {
		if strings.HasPrefix(item.CorrelationID, word) {
			all["GET history "+item.RowKey] = [2]string{http.MethodGet, "/api/history/shop/" + url.PathEscape(item.RowKey)}
		}
	}
	read("/api/dlq")
	for _, item := range found.Data.Items {
		if strings.HasPrefix(item.CorrelationID, word) {
			all["GET dead letter"] = [2]string{http.MethodGet, "/api/dlq/shop/" + url.PathEscape(item.RowKey)}
			all["retry"] = [2]string{http.MethodPost, "/api/dlq/shop/" + url.PathEscape(item.RowKey) + "/retry"}
			all["decide"] = [2]string{http.MethodPatch, "/api/dlq/shop/" + url.PathEscape(item.RowKey)}
		}
	}
	read("/api/tasks")
	for _, item := range found.Data.Items {
		if item.OrchestrationID == id {
			for _, action := range []string{"claim", "complete", "assign"} {
				all[action] = [2]string{http.MethodPost, "/api/tasks/" + url.PathEscape(id) + "/" + item.TaskID + "/" + action}
			}
			all["GET task"] = [2]string{http.MethodGet, "/api/tasks/" + url.PathEscape(id) + "/" + item.TaskID}
		}
	}
	read("/api/workflow/outbox")
	for _, item := range found.Data.Items {
		if strings.EqualFold(item.TenantID, tenantOf(word)) {
			path := "/api/workflow/outbox/" + url.PathEscape(item.TenantID) + "/" + item.ID
			all["GET event"], all["skip"] = [2]string{http.MethodGet, path}, [2]string{http.MethodPost, path + "/skip"}
		}
	}
	return all
}

// bodyOf returns the bodies that some requests need.
func bodyOf(name, method string) string {
	switch {
	case method == http.MethodGet || method == http.MethodDelete:
		return ""
	case name == "complete":
		return `{"output":true}`
	case name == "assign":
		return `{"assignee":"me"}`
	case name == "decide":
		return `{"status":"Resolved"}`
	default:
		return "{}"
	}
}

// Another tenant's objects do not exist, for reads and changes; an attempted change is recorded.
func TestThingsOfTenants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, thingsOfTenants)
}

func thingsOfTenants(t *testing.T) {
	m := newMarket(t)
	log := audit.Log{Tables: m.Tables}
	for _, word := range []string{"blue", "home", "none"} {
		time.Sleep(20 * time.Minute) // the caller has all entries of the audit log again
		m.Deliver()
		things := m.things(t, m.home, word)
		if len(things) < 14 && word != "none" {
			t.Errorf("%s has only %d things: %v", word, len(things), things)
		}
		for name, thing := range things {
			before, err := log.List(t.Context(), audit.Filter{Principal: m.red.ID()}, 100, "")
			testenv.OK(t, err)
			want, entries := http.StatusNotFound, 1
			switch {
			case strings.Contains(name, "purge"):
				want = http.StatusForbidden
			case thing[0] == http.MethodGet:
				entries = 0
			}
			status, answer := m.Do(thing[0], thing[1], bodyOf(name, thing[0]), m.red.Sign)
			testenv.Equal(t, fmt.Sprintf("red, %s of %s: %s", name, word, answer), want, status)
			after, err := log.List(t.Context(), audit.Filter{Principal: m.red.ID()}, 100, "")
			testenv.OK(t, err)
			if added := len(after.Entries) - len(before.Entries); added != entries || added == 1 && after.Entries[0].Outcome != audit.Refused {
				t.Errorf("red, %s of %s: %d entries are added: %+v", name, word, added, after.Entries[:added])
			}
		}
	}
	testenv.Equal(t, "messages that the attempts sent", 0, m.Deliver())
	for name, thing := range m.things(t, m.blue, "blue") {
		if thing[0] == http.MethodGet {
			if status, answer := m.Do(thing[0], thing[1], "", m.blue.Sign); status >= 300 {
				t.Errorf("blue, %s: %d %s", name, status, answer)
			}
		}
	}
}

// A caller of a tenant starts engines for that tenant and its own instances only, through each entry point.
func TestStartsOfTenants(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	start := func(input string) map[string][2]string {
		return map[string][2]string{
			"api":     {"/api/orchestrations", `{"orchestrator":"shop","input":` + input + `}`},
			"durable": {"/api/runtime/webhooks/durabletask/orchestrators/shop", input},
		}
	}
	for name, tt := range map[string]struct {
		input string
		want  int
	}{
		"its own":                      {`{"instanceId":"instance-red"}`, http.StatusAccepted},
		"its own, named":               {`{"instanceId":"instance-red","tenantId":"` + strings.ToUpper(tenantOf("red")) + `"}`, http.StatusAccepted},
		"another's instance":           {`{"instanceId":"instance-blue"}`, http.StatusForbidden},
		"another tenant":               {`{"instanceId":"instance-red","tenantId":"` + tenantOf("blue") + `"}`, http.StatusForbidden},
		"the platform's":               {`{"instanceId":"instance-none"}`, http.StatusForbidden},
		"no instance":                  {`{}`, http.StatusForbidden},
		"nothing":                      {`null`, http.StatusForbidden},
		"an unknown instance":          {`{"instanceId":"instance-green"}`, http.StatusForbidden},
		"an instance twice":            {`{"instanceId":"instance-blue","INSTANCEID":"instance-red"}`, http.StatusAccepted}, // that of red: the last one counts
		"an instance twice, otherwise": {`{"INSTANCEID":"instance-red","instanceId":"instance-blue"}`, http.StatusForbidden},
		"a tenant twice":               {`{"instanceId":"instance-red","tenantId":"` + tenantOf("red") + `","TENANTID":"` + tenantOf("blue") + `"}`, http.StatusForbidden},
		"a blob":                       {`{"instanceId":"instance-red","blob":"x"}`, http.StatusBadRequest},
		"no object":                    {`[1]`, http.StatusBadRequest},
	} {
		for door, request := range start(tt.input) {
			status, answer := m.Do(http.MethodPost, request[0], request[1], m.red.Sign)
			testenv.Equal(t, fmt.Sprintf("%s by the door %s: %s", name, door, answer), tt.want, status)
		}
	}
	m.Deliver()
	page, err := engine.NewHistory(m.Tables, "").List(t.Context(), engine.HistoryFilter{Engines: []string{"shop"}, Limit: engine.MaxLimit})
	testenv.OK(t, err)
	for _, e := range page.Entries {
		if strings.EqualFold(e.TenantID, tenantOf("red")) != (e.InstanceID == "instance-red") {
			t.Errorf("%+v", e)
		}
	}
	// Ids and keys of others reveal nothing, and take over nothing.
	for _, body := range []string{`{"orchestrator":"shop","correlationId":"blue-waits","input":{"instanceId":"instance-red"}}`,
		`{"orchestrator":"shop","correlationId":"blue-fails","input":{"instanceId":"instance-red"}}`} {
		// They are accepted as ids of its own, so the caller does not learn that blue has used them, and may use
		// them.
		if status, answer := m.Do(http.MethodPost, "/api/orchestrations", body, m.red.Sign); status != http.StatusAccepted || !strings.Contains(answer, `"shop-`+tenantOf("red")+":blue-") {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	same := func(who accesstest.Caller, instance string) string {
		status, answer := m.Do(http.MethodPost, "/api/orchestrations", `{"orchestrator":"shop","input":{"instanceId":"`+instance+`"}}`, who.Sign,
			func(r *http.Request) { r.Header.Set("Idempotency-Key", "k") })
		var got struct{ Data struct{ ID string } }
		if status != http.StatusAccepted || json.Unmarshal([]byte(answer), &got) != nil {
			t.Errorf("%d %s", status, answer)
		}
		return got.Data.ID
	}
	ids := []string{same(m.red, "instance-red"), same(m.blue, "instance-blue"), same(m.red, "instance-red")}
	if ids[0] == ids[1] || ids[0] != ids[2] {
		t.Errorf("%v", ids)
	}
}

// Callers of a tenant cannot make an engine act on property of another owner: neither by the instance or the input,
// nor through an engine without an owner, nor by editing a dead letter or registering the instance.
func TestOwnersOfWhatEnginesActOn(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	letters := data[struct {
		Items []struct{ RowKey, InstanceID string }
	}](t, m, "/api/dlq?engine=shop&status=Pending", m.red)
	if len(letters.Items) != 1 {
		t.Fatalf("%+v", letters)
	}
	message := func(word, of string) string {
		return fmt.Sprintf(`{"correlationId":"red-fails","instanceId":"instance-%s","tenantId":%q,"input":{"of":%q}}`, word, tenantOf("red"), of)
	}
	for who, caller := range map[string]accesstest.Caller{"red": m.red, "home": m.home} {
		for _, name := range []string{"shop", "depot"} {
			for _, word := range []string{"red", "blue", "none", "home"} {
				for _, of := range []string{"", tenantOf("red"), strings.ToUpper(tenantOf("red")), tenantOf("blue"), "nobody"} {
					allowed := who == "home" || name == "shop" && word == "red" && (of == "" || strings.EqualFold(of, tenantOf("red")))
					want := map[bool]int{true: http.StatusAccepted, false: http.StatusForbidden}[allowed]
					input := fmt.Sprintf(`{"instanceId":"instance-%s","input":{"of":%q}}`, word, of)
					for door, request := range map[string][2]string{
						"api":     {"/api/orchestrations", fmt.Sprintf(`{"orchestrator":%q,"input":%s}`, name, input)},
						"durable": {"/api/runtime/webhooks/durabletask/orchestrators/" + name, input},
					} {
						status, answer := m.Do(http.MethodPost, request[0], request[1], caller.Sign)
						testenv.Equal(t, fmt.Sprintf("%s starts %s of %s for %q by the door %s: %s", who, name, word, of, door, answer), want, status)
					}
				}
			}
		}
	}
	edit := "/api/dlq/shop/" + url.PathEscape(letters.Items[0].RowKey) + "/retry-edited"
	for name, tt := range map[string]struct {
		message string
		want    int
	}{
		"of another":     {message("red", tenantOf("blue")), http.StatusForbidden},
		"another's":      {message("blue", ""), http.StatusForbidden},
		"with a header":  {"roundhouse/1 {}\n" + message("red", tenantOf("blue")), http.StatusUnprocessableEntity},
		"an input twice": {strings.TrimSuffix(message("red", ""), "}") + `,"INPUT":{"of":"nobody"}}`, http.StatusForbidden},
	} {
		body := testenv.Must(json.Marshal(map[string]string{"message": tt.message}))(t)
		status, answer := m.Do(http.MethodPost, edit, string(body), m.red.Sign)
		testenv.Equal(t, fmt.Sprintf("an edit, %s: %s", name, answer), tt.want, status)
	}

	// An id under which an engine has worked for another owner cannot be registered.
	m.Send("shop-queue", `{"correlationId":"loose","instanceId":"loose","input":{}}`)
	m.Deliver()
	answers(t, m, http.StatusConflict, "", http.MethodPost, "/api/registry", `{"instanceId":"loose"}`, m.red.Sign)
	answers(t, m, http.StatusCreated, "", http.MethodPost, "/api/registry", `{"instanceId":"new"}`, m.red.Sign)

	// Adding the caller's own instance again is no error, even after the platform has worked for it.
	m.Send("shop-queue", `{"correlationId":"for-new","instanceId":"new","input":{}}`)
	m.Deliver()
	answers(t, m, http.StatusOK, "", http.MethodPost, "/api/registry", `{"instanceId":"new"}`, m.red.Sign)
}

// data returns the data of an answer.
func data[T any](t *testing.T, m market, path string, who accesstest.Caller) T {
	t.Helper()
	status, answer := m.get(t, path, who)
	var got struct{ Data T }
	if status != http.StatusOK || json.Unmarshal([]byte(answer), &got) != nil {
		t.Fatalf("%s: %d %s", path, status, answer)
	}
	return got.Data
}

// Bulk operations are limited to the rows that their caller sees.
func TestOperationsOfTenants(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	administrator := m.home
	for path, body := range map[string]string{"/api/dlq/retry": `{"engine":"shop"}`, "/api/dlq/expire": `{"olderThanDays":0}`, "/api/workflow/outbox/replay": `{"status":"pending"}`,
		"/api/orchestrations/purge": `{"olderThanDays":0}`} {
		answers(t, m, http.StatusForbidden, "", http.MethodPost, path, body, m.red.Sign)
	}
	status, answer := m.Do(http.MethodPost, "/api/dlq/expire", `{"olderThanDays":0}`, administrator.Sign)
	var op struct{ Data struct{ ID string } }
	if err := json.Unmarshal([]byte(answer), &op); err != nil || status != http.StatusAccepted {
		t.Fatal(status, answer)
	}
	if status, answer := m.get(t, "/api/operations/"+op.Data.ID, m.red); status != http.StatusNotFound {
		t.Errorf("%d %s", status, answer)
	}
	m.Deliver()
	page, err := (&audit.Log{Tables: m.Tables}).List(t.Context(), audit.Filter{Target: "operations/" + op.Data.ID}, 10, "")
	if err != nil || len(page.Entries) != 1 || page.Entries[0].After != "Completed: 4 changed, 0 passed over" || page.Entries[0].Principal != administrator.ID() {
		t.Errorf("%+v, %v", page.Entries, err)
	}
}

// A caller with the same name as another has none of the other's rights: a task of Ann is completed by Ann, and
// recorded as hers.
func TestTasksOfNamesakes(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	ann := accesstest.Caller{Tenant: "red", Object: "ann", Name: "ann@example.com"}
	mallory := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "ann@example.com"}
	task := "/api/tasks/shop-red-waits/1-2"
	answers(t, m, http.StatusOK, "", http.MethodPost, task+"/assign", `{"assignee":"`+strings.ToUpper(ann.ID())+`","assigneeName":"Ann"}`, m.home.Sign)
	for _, action := range []string{"complete", "release", "reassign"} {
		body := map[string]string{"complete": `{"output":true}`, "release": "{}", "reassign": `{"assignee":"` + mallory.ID() + `"}`}[action]
		if status, answer := m.Do(http.MethodPost, task+"/"+action, body, mallory.Sign); status != http.StatusForbidden && status != http.StatusConflict {
			t.Errorf("%s: %d %s", action, status, answer)
		}
	}
	status, answer := m.Do(http.MethodPost, task+"/complete", `{"output":true}`, ann.Sign)
	if status != http.StatusOK || !strings.Contains(answer, `"endedBy":"`+ann.ID()+`","endedByName":"ann@example.com"`) {
		t.Errorf("%d %s", status, answer)
	}
}

// Over HTTP, work under the correlation id of other work is refused before it starts, and a repetition of the same
// work is the same run. A queue message is dead-lettered instead, because it has no caller to answer.
func TestOtherWorkUnderACorrelationID(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	start := func(input string) (string, string) {
		return "/api/orchestrations", `{"orchestrator":"shop","correlationId":"red-waits","input":` + input + `}`
	}
	other := func(input string) (string, string) {
		return "/api/runtime/webhooks/durabletask/orchestrators/shop/shop-red-waits", input
	}
	path, body := start(`{"instanceId":"instance-red","tenantId":"` + tenantOf("red") + `","input":{}}`)
	answers(t, m, http.StatusAccepted, "", http.MethodPost, path, body, m.home.Sign)
	for name, door := range map[string]func(string) (string, string){"API": start, "Durable API": other} {
		for what, input := range map[string]string{
			"another instance": `{"instanceId":"instance-blue","input":{}}`,
			"another input":    `{"instanceId":"instance-red","tenantId":"` + tenantOf("red") + `","input":{"fail":true}}`,
		} {
			t.Run(what+" by "+name, func(t *testing.T) {
				path, body := door(input)
				answers(t, m, http.StatusConflict, "", http.MethodPost, path, body, m.home.Sign)
			})
		}
	}
}
