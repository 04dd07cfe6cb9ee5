package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

func instancePath(id string) string { return "/api/registry/" + url.PathEscape(id) }

// person sends a request as a user of a tenant.
func (b *outboxBench) person(t *testing.T, as, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return b.send(t, method, target, body, append(headers, "X-MS-CLIENT-PRINCIPAL", as)...)
}

func (b *outboxBench) instances(t *testing.T, query, as string) []string {
	t.Helper()
	if page := data[list[instanceItem]](t, b.person(t, as, http.MethodGet, "/api/registry?limit=2"+query, "")); page.ContinuationToken != "" && len(page.Items) != 2 {
		t.Errorf("%s: a page of %d, which is not the last", query, len(page.Items))
	}
	return each(walk[instanceItem](t, b, "/api/registry?limit=2"+query, "X-MS-CLIENT-PRINCIPAL", as), func(i instanceItem) string { return i.InstanceID })
}

// An instance is added, changed and removed.
func TestInstanceIsAddedChangedAndRemoved(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	const id = "/subscriptions/s1/größe #1?"
	ann := caller("ann", "home", "keeper")
	body := `{"instanceId":"` + id + `","tenantId":"t1","ring":"early","endpoints":{"events":"https://a.example.org/x"},"contact":{"name":"bo"}}`
	rec := b.person(t, ann, http.MethodPost, "/api/registry", body)
	if rec.Code != http.StatusCreated || rec.Header().Get("ETag") != `"1"` || rec.Header().Get("Location") != instancePath(id) {
		t.Fatalf("%d %s %v", rec.Code, rec.Body, rec.Header())
	}
	if rec := b.person(t, ann, http.MethodPost, "/api/registry", body); rec.Code != http.StatusOK || rec.Header().Get("ETag") != `"1"` {
		t.Errorf("the same again: %d %s", rec.Code, rec.Body)
	}
	expect(t, b.person(t, ann, http.MethodPost, "/api/registry", `{"instanceId":"`+id+`","ring":"late"}`), http.StatusConflict, codeInstanceExists, "another one")
	rec = b.person(t, ann, http.MethodPatch, instancePath(id), `{"ring":"late","contact":{"name":null,"phone":1}}`, "If-Match", `"1"`)
	d := data[instanceDetail](t, rec)
	const want = `{"contact":{"phone":1},"endpoints":{"events":"https://a.example.org/x"},"instanceId":"` + id + `","instanceLock":{"lockDurationSeconds":3600,"lockJobId":"","lockUntilUtc":""},"registryVersion":2,"ring":"late","tenantId":"t1"}`
	if diff := cmp.Diff(want, string(d.Document)); rec.Code != http.StatusOK || rec.Header().Get("ETag") != `"2"` || d.Ring != "late" || d.RegistryVersion != 2 || diff != "" {
		t.Errorf("%d %+v (-want +got):\n%s", rec.Code, d.instanceItem, diff)
	}
	for _, method := range []string{http.MethodPatch, http.MethodDelete} {
		sent := ""
		if method == http.MethodPatch {
			sent = `{"ring":"x"}`
		}
		rec = b.person(t, ann, method, instancePath(id), sent, "If-Match", `"1"`)
		if rec.Code != http.StatusPreconditionFailed || code(t, rec) != codePrecondition || rec.Header().Get("ETag") != `"2"` {
			t.Errorf("%s of an old version: %d %s", method, rec.Code, rec.Body)
		}
	}
	rec = b.person(t, ann, http.MethodDelete, instancePath(id), "", "If-Match", `"2"`)
	if r := data[removed](t, rec); rec.Code != http.StatusOK || r.InstanceID != id || len(r.Remains) == 0 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		expect(t, b.person(t, ann, method, instancePath(id), ""), http.StatusNotFound, "", "%s of what is gone", method)
	}
	page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Target: "registry/" + id}, 20, "")
	var actions []string
	for _, e := range page.Entries {
		actions = append(actions, fmt.Sprint(e.Action, " ", e.Outcome))
	}
	slices.Reverse(actions)
	if diff := cmp.Diff([]string{"add Done", "add Done", "add Failed", "change Done", "remove Done"}, actions); err != nil || diff != "" {
		t.Errorf("%v: recorded (-want +got):\n%s", err, diff)
	}
}

// Forbidden and invalid members are refused one by one, and change nothing.
func TestInstanceIsNotChanged(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	ann := caller("ann", "home", "keeper")
	for _, id := range []string{"i1", "publisher"} {
		testenv.Must(b.registry.Create(t.Context(), registry.Instance{InstanceID: id}))(t)
	}
	for name, c := range map[string]struct {
		method, id, body string
		status           int
		target, says     string
	}{
		"fields of engines":    {http.MethodPatch, "i1", `{"version":"2","pendingUpdate":{},"desired":{},"health":{},"provisioning":{},"components":{}}`, 400, "components", "update writes"},
		"the lock":             {http.MethodPatch, "i1", `{"instanceLock":{"lockJobId":"me"}}`, 400, "instanceLock", "drain"},
		"the version":          {http.MethodPatch, "i1", `{"registryVersion":7}`, 400, "registryVersion", "If-Match"},
		"a ring":               {http.MethodPatch, "i1", `{"ring":"a b"}`, 400, "ring", "letters"},
		"no https":             {http.MethodPatch, "i1", `{"endpoints":{"events":"ftp://x"}}`, 400, "endpoints", "https"},
		"a secret":             {http.MethodPatch, "i1", `{"mail":{"password":"hunter2"}}`, 400, "mail", "key vault"},
		"no object":            {http.MethodPatch, "i1", `[1]`, 400, "", "object"},
		"nothing":              {http.MethodPatch, "i1", ``, 400, "", "object"},
		"another account":      {http.MethodPatch, "publisher", `{"engineTablesConfig":{"storageAccountName":"acct2"}}`, 400, "engineTablesConfig", "acct1"},
		"the registry's table": {http.MethodPatch, "publisher", `{"engineTablesConfig":{"dlqTableName":"Registry"}}`, 400, "engineTablesConfig", "other things"},
		"two in one table":     {http.MethodPatch, "publisher", `{"engineTablesConfig":{"dlqTableName":"ENGINEHISTORY"}}`, 400, "engineTablesConfig", "one table"},
		"too many days":        {http.MethodPatch, "publisher", `{"engineTablesConfig":{"retention":{"hmac":3651}}}`, 400, "engineTablesConfig", "3650"},
		"the app's own":        {http.MethodDelete, "publisher", "", 409, "", "the app itself"},
		"too much":             {http.MethodPatch, "i1", `{"more":"` + strings.Repeat("x", maxBody) + `"}`, 413, "", "bytes"},
		"of nobody":            {http.MethodPatch, "i2", `{"ring":"a"}`, 404, "", "no such instance"},
		"no id":                {http.MethodPost, "", `{"ring":"a"}`, 400, "instanceId", "which instance"},
		"an id nobody sees":    {http.MethodPost, "", `{"instanceId":"a\u202eb"}`, 400, "instanceId", "can be seen"},
		"a long id":            {http.MethodPost, "", `{"instanceId":"` + strings.Repeat("i", 513) + `"}`, 400, "", "1 to 512"},
		"a new one of engines": {http.MethodPost, "", `{"instanceId":"i3","version":"1"}`, 400, "version", "update writes"},
		"for no time":          {http.MethodPost, "i1/drain", `{"forSeconds":0}`, 400, "forSeconds", "from 1"},
		"for too long":         {http.MethodPost, "i1/drain", `{"forSeconds":604801}`, 400, "forSeconds", "604800"},
		"a number for a text":  {http.MethodPost, "i1/drain", `{"reason":1}`, 400, "reason", "string"},
		"a body for a resume":  {http.MethodPost, "i1/resume", `{"force":true}`, 400, "force", "no such member"},
	} {
		target := "/api/registry"
		if id, word, _ := strings.Cut(c.id, "/"); id != "" {
			target = strings.TrimSuffix(instancePath(id)+"/"+word, "/")
		}
		rec := b.person(t, ann, c.method, target, c.body)
		e := decode(t, rec).Error
		if rec.Code != c.status || e.Target != c.target || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %d %+v", name, rec.Code, e)
		}
	}
	for _, id := range []string{"i1", "publisher"} {
		if i, err := b.registry.Get(t.Context(), id); err != nil || i.Version != 1 {
			t.Errorf("%s: version %d, %v", id, i.Version, err)
		}
	}
}

// Callers of a tenant see and change its own instances, and learn nothing of others.
func TestInstancesOfTenants(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	red, home := caller("ann", "red", "keeper"), caller("bob", "home", "keeper")
	for id, tenant := range map[string]string{"r1": "red", "r2": "red", "b1": "blue", "n1": ""} {
		i := registry.Instance{InstanceID: id}
		if tenant != "" {
			i.TenantID = strings.ToUpper(accesstest.ID(tenant))
		}
		testenv.OK(t, i.SetField(registry.FieldRing, "ring-"+id[:1]))
		testenv.Must(b.registry.Create(t.Context(), i))(t)
	}
	if rec := b.person(t, red, http.MethodPost, instancePath("r1")+"/drain", ""); rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	broken := tables.Entity{Key: tables.Key{Partition: "instance", Row: "d1"}, Properties: map[string]any{"Document": "{"}}
	testenv.OK(t, b.tables.Apply(t.Context(), registry.DefaultTable, tables.Insert(broken)))
	for query, want := range map[string][2][]string{
		"":                                  {{"r1", "r2"}, {"b1", "d1", "n1", "r1", "r2"}},
		"&ring=ring-b":                      {nil, {"b1"}},
		"&tenantId=" + accesstest.ID("red"): {{"r1", "r2"}, {"r1", "r2"}},
		"&locked=true":                      {{"r1"}, {"r1"}},
		"&locked=false":                     {{"r2"}, {"b1", "n1", "r2"}},
	} {
		for n, as := range []string{red, home} {
			testenv.Equal(t, fmt.Sprintf("%q of caller %d", query, n), want[n], b.instances(t, query, as))
		}
	}
	for name, c := range map[string]struct {
		method, target, body string
		status               int
	}{
		"another's":              {http.MethodGet, instancePath("b1"), "", 404},
		"nobody's":               {http.MethodPatch, instancePath("n1"), `{"ring":"x"}`, 404},
		"to drain another's":     {http.MethodPost, instancePath("b1") + "/drain", "", 404},
		"to remove another's":    {http.MethodDelete, instancePath("b1"), "", 404},
		"to give away":           {http.MethodPatch, instancePath("r2"), `{"tenantId":"blue"}`, 403},
		"to give to nobody":      {http.MethodPatch, instancePath("r2"), `{"tenantId":null}`, 403},
		"to add for another":     {http.MethodPost, "/api/registry", `{"instanceId":"b2","tenantId":"blue"}`, 403},
		"to add what is there":   {http.MethodPost, "/api/registry", `{"instanceId":"b1"}`, 409},
		"to add one of its own":  {http.MethodPost, "/api/registry", `{"instanceId":"r3"}`, 201},
		"to change its own":      {http.MethodPatch, instancePath("r2"), `{"ring":"x"}`, 200},
		"a damaged one":          {http.MethodGet, instancePath("d1"), "", 409},
		"to remove a damaged":    {http.MethodDelete, instancePath("d1"), "", 409},
		"the token of others":    {http.MethodGet, "/api/registry?continuationToken=x", "", 400},
		"an unknown one to lock": {http.MethodPost, instancePath("r9") + "/unlock", "", 404},
	} {
		expect(t, b.person(t, red, c.method, c.target, c.body), c.status, "", "%s", name)
	}
	if i, err := b.registry.Get(t.Context(), "r3"); err != nil || !strings.EqualFold(i.TenantID, accesstest.ID("red")) {
		t.Errorf("%+v, %v", i, err)
	}
}

// A drained instance is changed by the caller that drained it, resumed by any permitted caller, and drained by no
// other meanwhile.
func TestInstanceIsDrained(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	ann, bob := caller("ann", "home", "keeper"), caller("bob", "home", "keeper")
	create := func(id string) {
		testenv.Must(b.registry.Create(t.Context(), registry.Instance{InstanceID: id}))(t)
	}
	create("i1")
	path := instancePath("i1")
	rec := b.person(t, ann, http.MethodPost, path+"/drain", `{"forSeconds":600,"reason":"the network moves"}`)
	if l := data[instanceDetail](t, rec).Lock; !l.Held || l.DrainedBy != idOf("ann", "home") || l.JobID != "drain/"+idOf("ann", "home") {
		t.Errorf("%d %+v", rec.Code, l)
	}
	again := data[instanceDetail](t, b.person(t, ann, http.MethodPost, path+"/drain", `{"forSeconds":60}`))
	testenv.Equal(t, "the lock, drained again for less", data[instanceDetail](t, rec).Lock, again.Lock)
	for name, c := range map[string]struct{ method, target, body string }{
		"drain":  {http.MethodPost, path + "/drain", ""},
		"change": {http.MethodPatch, path, `{"ring":"x"}`},
		"remove": {http.MethodDelete, path, ""},
	} {
		rec := b.person(t, bob, c.method, c.target, c.body)
		if rec.Code != http.StatusConflict || code(t, rec) != codeInstanceLocked || rec.Header().Get("Retry-After") == "" || !strings.Contains(rec.Body.String(), idOf("ann", "home")) {
			t.Errorf("%s by another: %d %s %v", name, rec.Code, rec.Body, rec.Header())
		}
	}
	if rec := b.person(t, bob, http.MethodPost, path+"/unlock", ""); rec.Code != http.StatusConflict || !strings.Contains(rec.Body.String(), "resume it") {
		t.Errorf("unlock: %d %s", rec.Code, rec.Body)
	}
	if rec := b.person(t, ann, http.MethodPatch, path, `{"ring":"x"}`); rec.Code != http.StatusOK || !data[instanceDetail](t, rec).Lock.Held {
		t.Errorf("change by who drained it: %d %s", rec.Code, rec.Body)
	}
	for range 2 {
		rec := b.person(t, bob, http.MethodPost, path+"/resume", "")
		if rec.Code != http.StatusOK || data[instanceDetail](t, rec).Lock.Held {
			t.Errorf("resume: %d %s", rec.Code, rec.Body)
		}
	}
	expect(t, b.person(t, bob, http.MethodPost, path+"/drain", ""), http.StatusOK, "", "drain after the resume")
	expect(t, b.person(t, bob, http.MethodDelete, path, ""), http.StatusOK, "", "remove by who drained it")
	page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Target: "registry/i1"}, 50, "")
	if err != nil || !slices.ContainsFunc(page.Entries, func(e audit.Entry) bool { return e.Action == "drain" && e.Reason == "the network moves" }) {
		t.Errorf("%+v, %v", page.Entries, err)
	}
	create("i2")
	if rec := b.person(t, ann, http.MethodPost, instancePath("i2")+"/drain", `{"forSeconds":60}`); rec.Code != http.StatusOK {
		t.Fatal(rec.Body)
	}
	b.pass(time.Minute)
	expect(t, b.person(t, bob, http.MethodPatch, instancePath("i2"), `{"ring":"x"}`), http.StatusOK, "", "after the drain has expired")
}

// The lock of an active run stays; that of an ended or missing one is removed.
func TestInstanceIsUnlocked(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	ann := caller("ann", "home", "keeper")
	const id = "/i/1"
	testenv.Must(b.registry.Create(t.Context(), registry.Instance{InstanceID: id}))(t)
	runs := "hmac-" + id
	b.ask(t, runs, question("red"))
	hold := func(job string) {
		testenv.Must(b.registry.Acquire(t.Context(), id, job, time.Hour))(t)
	}
	hold(runs + "/c-" + runs)
	for _, word := range []string{"unlock", "resume"} {
		rec := b.person(t, ann, http.MethodPost, instancePath(id)+"/"+word, "")
		if rec.Code != http.StatusConflict || code(t, rec) != codeInstanceLocked || rec.Header().Get("Retry-After") != "3600" || !strings.Contains(rec.Body.String(), runs) {
			t.Errorf("%s under a run: %d %s", word, rec.Code, rec.Body)
		}
	}
	if rec := b.person(t, ann, http.MethodPost, orchestrationPath(runs)+"/terminate", `{"reason":"stuck"}`); rec.Code != http.StatusAccepted {
		t.Fatal(rec.Body)
	}
	b.drive(t)
	for _, job := range []string{"", "hmac-x/another run/of/it", "custom"} { // "" is the run that was terminated
		if job != "" {
			hold(job)
		}
		rec := b.person(t, ann, http.MethodPost, instancePath(id)+"/unlock", "")
		if rec.Code != http.StatusOK || data[instanceDetail](t, rec).Lock.JobID != "" {
			t.Errorf("%q: %d %s", job, rec.Code, rec.Body)
		}
	}
}

// Of two writers with the same version, one changes the instance, even when the other interferes between read and
// write.
func TestInstanceIsChangedOnce(t *testing.T) {
	t.Parallel()
	ann, s, rivals := caller("ann", "home", "keeper"), inMemory(), 0
	var b *outboxBench
	s.tables = faults.Tables(s.tables, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if c.Operation == "Apply" && c.Target == registry.DefaultTable && rivals > 0 {
			rivals--
			expect(t, b.person(t, ann, http.MethodPatch, instancePath("i1"), `{"ring":"first"}`, "If-Match", `"1"`), http.StatusOK, "", "the first")
		}
		return next(ctx)
	})
	b = newOutboxBenchOver(t, s)
	testenv.Must(b.registry.Create(t.Context(), registry.Instance{InstanceID: "i1"}))(t)
	rivals = 1
	expect(t, b.person(t, ann, http.MethodPatch, instancePath("i1"), `{"ring":"second"}`, "If-Match", `"1"`), http.StatusPreconditionFailed, codePrecondition, "the second")
	i, err := b.registry.Get(t.Context(), "i1")
	ring, bad := i.Ring()
	if err := errors.Join(err, bad); err != nil || ring != "first" || i.Version != 2 {
		t.Errorf("%s of version %d, %v", ring, i.Version, err)
	}
}

// instanceModel is the simplest model of one instance in the registry.
type instanceModel struct {
	there  bool
	ring   string
	holder string
	until  time.Time
}

// After any sequence of changes by operators and engines, the API's answers and the registry equal the model.
func TestInstanceStateMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b, m := newOutboxBench(t), instanceModel{}
		people := map[string]string{"drain/" + idOf("ann", "home"): caller("ann", "home", "keeper"), "drain/" + idOf("bob", "home"): caller("bob", "home", "keeper")}
		somebody := rapid.SampledFrom([]string{"drain/" + idOf("ann", "home"), "drain/" + idOf("bob", "home")})
		held := func() bool { return m.holder != "" && b.now().Before(m.until) }
		expect := func(what string, rec *httptest.ResponseRecorder, want int) {
			if rec.Code != want {
				rt.Fatalf("%s: %d %s, want %d; %+v", what, rec.Code, rec.Body, want, m)
			}
		}
		send := func(job, method, target, body string) *httptest.ResponseRecorder { // other tests compare answers with the document
			req := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
			req.Header.Set("X-MS-CLIENT-PRINCIPAL", people[job])
			return serve(b.echo, req)
		}
		ask := func(job, method, word, body string) *httptest.ResponseRecorder {
			return send(job, method, strings.TrimSuffix(instancePath("i1")+"/"+word, "/"), body)
		}
		mine := func(job string) bool { return !held() || m.holder == job }
		status := func(allowed bool) int {
			switch {
			case !m.there:
				return http.StatusNotFound
			case allowed:
				return http.StatusOK
			default:
				return http.StatusConflict
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				rec := send(somebody.Draw(rt, "who"), http.MethodPost, "/api/registry", `{"instanceId":"i1","ring":"r0"}`)
				switch {
				case !m.there:
					expect("add", rec, http.StatusCreated)
					m = instanceModel{there: true, ring: "r0"}
				case m.ring == "r0":
					expect("add again", rec, http.StatusOK)
				default:
					expect("add another", rec, http.StatusConflict)
				}
			},
			"change": func(rt *rapid.T) {
				job, ring := somebody.Draw(rt, "who"), rapid.SampledFrom([]string{"r0", "r1"}).Draw(rt, "ring")
				want := status(mine(job))
				expect("change", ask(job, http.MethodPatch, "", `{"ring":"`+ring+`"}`), want)
				if want != http.StatusOK {
					return
				}
				if m.ring = ring; !held() {
					m.holder, m.until = "", time.Time{} // a write removes an expired lock
				}
			},
			"remove": func(rt *rapid.T) {
				job := somebody.Draw(rt, "who")
				want := status(mine(job))
				expect("remove", ask(job, http.MethodDelete, "", ""), want)
				if want == http.StatusOK {
					m = instanceModel{}
				}
			},
			"drain": func(rt *rapid.T) {
				job, seconds := somebody.Draw(rt, "who"), rapid.SampledFrom([]int{60, 600}).Draw(rt, "for")
				want := status(mine(job))
				expect("drain", ask(job, http.MethodPost, "drain", fmt.Sprintf(`{"forSeconds":%d}`, seconds)), want)
				until := b.now().Add(time.Duration(seconds) * time.Second)
				if want != http.StatusOK {
					return
				}
				if m.holder == job && m.until.After(until) {
					until = m.until
				}
				m.holder, m.until = job, until
			},
			"resume": func(rt *rapid.T) {
				want := status(!held() || strings.HasPrefix(m.holder, "drain/"))
				expect("resume", ask(somebody.Draw(rt, "who"), http.MethodPost, "resume", ""), want)
				if want == http.StatusOK {
					m.holder, m.until = "", time.Time{}
				}
			},
			"unlock": func(rt *rapid.T) { // no orchestration runs here
				want := status(!held() || !strings.HasPrefix(m.holder, "drain/"))
				expect("unlock", ask(somebody.Draw(rt, "who"), http.MethodPost, "unlock", ""), want)
				if want == http.StatusOK {
					m.holder, m.until = "", time.Time{}
				}
			},
			"an engine takes the lock": func(*rapid.T) {
				_, err := b.registry.Acquire(t.Context(), "i1", "health-i1/run", 5*time.Minute)
				if allowed := m.there && mine("health-i1/run"); (err == nil) != allowed {
					rt.Fatalf("acquire: %v, %+v", err, m)
				} else if allowed {
					until := b.now().Add(5 * time.Minute)
					if m.holder == "health-i1/run" && m.until.After(until) {
						until = m.until
					}
					m.holder, m.until = "health-i1/run", until
				}
			},
			"an engine writes": func(*rapid.T) {
				_, err := b.registry.Update(t.Context(), "i1", "health-i1/run", func(i *registry.Instance) error { return i.SetField("health", i.Version) })
				if allowed := m.there && held() && m.holder == "health-i1/run"; (err == nil) != allowed {
					rt.Fatalf("update: %v, %+v", err, m)
				}
			},
			"time passes": func(rt *rapid.T) {
				b.pass(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 10 * time.Minute}).Draw(rt, "time"))
			},
			"": func(*rapid.T) {
				rec := ask("drain/"+idOf("ann", "home"), http.MethodGet, "", "")
				if !m.there {
					expect("get", rec, http.StatusNotFound)
					return
				}
				d := data[instanceDetail](t, rec)
				want := instanceLock{Held: held(), JobID: m.holder, UntilUtc: m.until}
				if want.Held && strings.HasPrefix(m.holder, "drain/") {
					want.DrainedBy = strings.TrimPrefix(m.holder, "drain/")
				}
				if d.Ring != m.ring || d.Lock != want || !json.Valid(d.Document) {
					rt.Fatalf("%+v, want %+v", d.instanceItem, m)
				}
			},
		})
	})
}
