package handler

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/handler/settings/settingstest"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// door is an app over memory stores, with its entry points.
type door struct {
	handler *Handler
	tables  *tables.Memory
}

func openDoor(t *testing.T, environment settingstest.Environment) door {
	t.Helper()
	d := door{tables: tables.NewMemory()}
	var err error
	if d.handler, err = New(workApp(), Config{Lookup: environment.Lookup, Tables: d.tables, Queues: queues.NewMemory(), Blobs: blobs.NewMemory()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.handler.Close)
	testenv.OK(t, d.handler.Start(t.Context()))
	return d
}

// asker is a kind of caller: its change of a request, and its roles in the words of the manifest. known means that
// the caller is authenticated, scoped that it is bound to one tenant.
type asker struct {
	roles         []access.Role
	known, scoped bool
	machine       bool
	ask           func(r *http.Request)
}

func as(c accesstest.Caller) func(r *http.Request) { return func(r *http.Request) { c.Sign(r) } }

func claims(text string) func(r *http.Request) {
	return func(r *http.Request) { r.Header.Set("X-MS-CLIENT-PRINCIPAL", text) }
}

const roundhouse = "Roundhouse."

// askers returns all kinds of callers of an app with sign-in, whose home tenant is "home", where the group "ops" are
// operators, and other tenants can have readers.
func askers() map[string]asker {
	home := func(roles ...string) accesstest.Caller {
		return accesstest.Caller{Tenant: "home", Object: "ann", Name: "ann@example.com", AppRoles: roles}
	}
	other := func(roles ...string) accesstest.Caller {
		return accesstest.Caller{Tenant: "red", Object: "mallory", Name: "ann@example.com", AppRoles: roles}
	}
	grouped, crowd, foreign, machine := home(), home(), other(), home(roundhouse+"reader")
	grouped.Groups, foreign.Groups, machine.Application = []string{"staff", "ops"}, []string{"ops"}, true
	for n := range 200 {
		crowd.Groups = append(crowd.Groups, fmt.Sprint("group ", n))
	}
	crowd.AppRoles = []string{roundhouse + "Administrator"}
	if len(crowd.Header()) < 16<<10 {
		panic("200 groups make no large header")
	}
	return map[string]asker{
		"nobody":                              {ask: func(*http.Request) {}},
		"a person without roles":              {roles: []access.Role{access.Participant}, known: true, ask: as(home("approver"))},
		"a reader":                            {roles: []access.Role{access.Reader}, known: true, ask: as(home(roundhouse + "READER"))},
		"an operator":                         {roles: []access.Role{access.Operator}, known: true, ask: as(home(roundhouse+"reader", roundhouse+"operator"))},
		"an operator by a group":              {roles: []access.Role{access.Operator}, known: true, ask: as(grouped)},
		"an administrator":                    {roles: []access.Role{access.Administrator}, known: true, ask: as(home(roundhouse + "Administrator"))},
		"an administrator with 200 groups":    {roles: []access.Role{access.Administrator}, known: true, ask: as(crowd)},
		"an application":                      {roles: []access.Role{access.Reader}, known: true, ask: as(machine)},
		"another tenant":                      {roles: []access.Role{access.Participant}, known: true, scoped: true, ask: as(other())},
		"another tenant's reader":             {roles: []access.Role{access.Reader}, known: true, scoped: true, ask: as(other(roundhouse + "Reader"))},
		"another tenant's administrator":      {roles: []access.Role{access.Reader}, known: true, scoped: true, ask: as(other(roundhouse + "Administrator"))},
		"another tenant's member of a group":  {roles: []access.Role{access.Participant}, known: true, scoped: true, ask: as(foreign)},
		"a key":                               {roles: []access.Role{access.Sender}, known: true, machine: true, ask: func(*http.Request) {}},
		"a person who comes by a key":         {roles: []access.Role{access.Participant}, known: true, machine: true, ask: as(home())},
		"a header that is no base64":          {ask: claims("!"), known: true},
		"a header that is no JSON":            {ask: claims("e30x"), known: true},
		"a header without claims":             {ask: claims("e30="), known: true},
		"a token without a tenant":            {ask: as(accesstest.Caller{Object: "ann", AppRoles: []string{roundhouse + "Administrator"}}), known: true},
		"a token without an object":           {ask: as(accesstest.Caller{Tenant: "home", AppRoles: []string{roundhouse + "Administrator"}}), known: true},
		"a damaged header by a key":           {ask: claims("!"), known: true, machine: true},
		"a header that is too long by a key":  {ask: claims(strings.Repeat("e30x", 40_000)), known: true, machine: true},
		"a page of another site":              {known: true, ask: crossSite(home(roundhouse + "Administrator")), roles: []access.Role{access.Administrator}},
		"a page of another origin":            {known: true, ask: withOrigin(home(roundhouse+"Administrator"), "https://example.org"), roles: []access.Role{access.Administrator}},
		"a page without an origin":            {known: true, ask: withOrigin(home(roundhouse+"Administrator"), "null"), roles: []access.Role{access.Administrator}},
		"an administrator of no known tenant": {roles: []access.Role{access.Participant}, known: true, scoped: true, ask: as(accesstest.Caller{Tenant: "", Object: "", AppRoles: nil})},
	}
}

// crossSite returns a request that a page of another site sends through a signed-in browser.
func crossSite(c accesstest.Caller) func(r *http.Request) {
	return func(r *http.Request) {
		c.Sign(r)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
	}
}

// withOrigin returns a request that a page sends through an older browser, which does not report the site.
func withOrigin(c accesstest.Caller, origin string) func(r *http.Request) {
	return func(r *http.Request) {
		c.Sign(r)
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", origin)
	}
}

func signIn() settingstest.Environment {
	return emulator.With("WEBSITE_AUTH_ENABLED", "True", "WEBSITE_SITE_NAME", "app", "ROUNDHOUSE_HOME_TENANT", accesstest.ID("home"),
		"ROUNDHOUSE_ROLES", `{"operator": {"appRoles": ["Roundhouse.Operator"], "groups": ["`+accesstest.ID("ops")+`"]}, "otherTenants": "reader"}`)
}

var segment = regexp.MustCompile(`:[A-Za-z]+`)

// send calls a route, for an object that does not exist.
func (d door) send(t *testing.T, r Route, a asker) *httptest.ResponseRecorder {
	t.Helper()
	path := segment.ReplaceAllString(r.Path, "nothing")
	if a.machine {
		path = strings.Replace(path, "/api/", "/api/machine/", 1)
	}
	body := "{}"
	if r.Method == http.MethodGet || r.Method == http.MethodDelete {
		body = ""
	}
	req := httptest.NewRequestWithContext(t.Context(), r.Method, path, strings.NewReader(body))
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	if consoles(r) {
		req.Header.Set("Sec-Fetch-Site", "same-origin") // the pages accept changes from themselves only
	}
	a.ask(req)
	rec := httptest.NewRecorder()
	d.handler.ServeHTTP(rec, req)
	return rec
}

// consoles reports whether a route is one of the console.
func consoles(r Route) bool { return strings.HasPrefix(r.Path, console.Root) }

// want returns the status by the manifest: 0 for any answer of the endpoint to a permitted caller.
func (a asker) want(m Access, r Route) int {
	i := slices.IndexFunc(m.Permissions, func(p Permission) bool { return p.Name == r.Permission })
	has := slices.ContainsFunc(a.roles, func(role access.Role) bool { return slices.Contains(m.Roles[role], r.Permission) })
	switch {
	case r.Permission == access.Public:
		return 0
	case !a.known:
		return http.StatusUnauthorized
	case !has, a.scoped && m.Permissions[i].Platform:
		return http.StatusForbidden
	default:
		return 0
	}
}

// Every route answers every kind of caller as in the manifest.
func TestPermissions(t *testing.T) {
	t.Parallel()
	sample.Repeat(t)
	d := openDoor(t, signIn())
	m := d.handler.Manifest().Access
	asked := 0
	for name, a := range askers() {
		for _, r := range m.Routes {
			if r.Opens != "" || !sample.Keep(t, name, r.Method, r.Path) { // the host or the engine opens it
				continue
			}
			want := a.want(m, r)
			if strings.HasPrefix(name, "a page ") && want == 0 && r.Method != http.MethodGet && r.Permission != access.Public {
				want = http.StatusForbidden
			}
			if name == "an administrator of no known tenant" && r.Permission != access.Public {
				want = http.StatusForbidden
			}
			if a.machine && consoles(r) {
				want = http.StatusNotFound // it is for users
			}
			rec := d.send(t, r, a)
			asked++
			refused := rec.Code == http.StatusUnauthorized || rec.Code == http.StatusForbidden
			if want != 0 && rec.Code != want || want == 0 && refused || rec.Code == http.StatusMethodNotAllowed || rec.Code == http.StatusInternalServerError {
				t.Errorf("%s: %s %s (%s): %d, want %d: %.200s", name, r.Method, r.Path, r.Permission, rec.Code, want, rec.Body)
			}
		}
	}
	t.Logf("%d requests", asked)
}

// The manifest has every route of the functions, each with its permission.
func TestEveryRouteHasAPermission(t *testing.T) {
	t.Parallel()
	d := openDoor(t, signIn())
	m := d.handler.Manifest()
	known := map[access.Permission]bool{}
	for _, p := range m.Access.Permissions {
		known[p.Name] = true
	}
	for _, r := range m.Access.Routes {
		if known[r.Permission] == (r.Opens != "") {
			t.Errorf("%s %s: permission %q, opened by %q", r.Method, r.Path, r.Permission, r.Opens)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Functions)) {
		trigger := m.Functions[name].Bindings[0]
		if trigger.Type != "httpTrigger" {
			continue
		}
		route := strings.TrimPrefix(trigger.Route, "machine/")
		route = strings.TrimSuffix(strings.Replace(route, "{runtime}", "runtime", 1), "/{*path}")
		for _, method := range trigger.Methods {
			if method == "head" && slices.Contains(trigger.Methods, "get") {
				continue
			}
			leads := slices.ContainsFunc(m.Access.Routes, func(r Route) bool {
				path := strings.TrimPrefix(segment.ReplaceAllString(r.Path, "{}"), "/api/")
				own := parameter.ReplaceAllString(route, "{}")
				return strings.EqualFold(r.Method, method) && (path == own || strings.HasPrefix(path, own+"/"))
			})
			if !leads {
				t.Errorf("%s: %s %s is no route of the manifest", name, method, trigger.Route)
			}
		}
	}
	// A path without a route is answered with 404 or 405, for any caller.
	for _, path := range []string{"/api", "/api/nothing", "/api/dlq/a/b/c/d", "/api/machine", "/api/machine/machine/dlq", "/api/runtime/webhooks/durabletask/x"} {
		if rec := d.send(t, Route{Route: route(http.MethodGet, path)}, askers()["an administrator"]); rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
}

// Without sign-in, keys alone open the app; users get the required configuration.
func TestPermissionsWithoutSignIn(t *testing.T) {
	t.Parallel()
	azure := emulator.With("WEBSITE_SITE_NAME", "app")
	for _, tt := range []struct {
		name   string
		app    settingstest.Environment
		asker  asker
		status int // of a permitted route
		code   string
	}{
		{"a key", azure, asker{machine: true, ask: func(*http.Request) {}}, 0, ""},
		{"a key of an app that gives it nothing", azure.With("ROUNDHOUSE_ROLES", `{"keys": "none"}`), asker{machine: true, ask: func(*http.Request) {}}, http.StatusForbidden, "Forbidden"},
		{"nobody", azure, asker{ask: func(*http.Request) {}}, http.StatusForbidden, "SignInNotConfigured"},
		{"a header that anybody can write", azure, askers()["an administrator"], http.StatusForbidden, "SignInNotConfigured"},
		{"a developer's machine", development(), asker{ask: func(*http.Request) {}}, 0, ""},
		{"an app that calls itself one in Azure", development().With("WEBSITE_SITE_NAME", "app"), asker{ask: func(*http.Request) {}}, http.StatusForbidden, "SignInNotConfigured"},
		{"with its key", development().With("ROUNDHOUSE_LOCAL_KEY", "k"), asker{ask: header("x-functions-key", "k")}, 0, ""},
		{"with a wrong key", development().With("ROUNDHOUSE_LOCAL_KEY", "k"), asker{ask: header("x-functions-key", "kk")}, http.StatusUnauthorized, "Unauthenticated"},
		{"without its key", development().With("ROUNDHOUSE_LOCAL_KEY", "k"), asker{machine: true, ask: func(*http.Request) {}}, http.StatusUnauthorized, "Unauthenticated"},
		{"by the name of another host", development(), asker{ask: func(r *http.Request) { r.Host = "evil.example" }}, http.StatusForbidden, "Forbidden"},
		{"by a name that the proxy saw", development(), asker{ask: header("X-Forwarded-Host", "evil.example:7071")}, http.StatusForbidden, "Forbidden"},
		{"from another machine", development(), asker{ask: header("X-Forwarded-For", "127.0.0.1, 10.0.0.7")}, http.StatusForbidden, "Forbidden"},
		{"from another page", development(), asker{ask: header("Origin", "https://evil.example")}, http.StatusForbidden, "Forbidden"},
		{"from a page of another port", development(), asker{ask: header("Origin", "http://localhost:9999")}, http.StatusForbidden, "Forbidden"},
		{"from a page of its own", development(), asker{ask: header("Origin", "http://localhost")}, 0, ""},
		{"with an administrator's header", development().With("ROUNDHOUSE_LOCAL_KEY", "k"), askers()["an administrator"], http.StatusUnauthorized, "Unauthenticated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := openDoor(t, tt.app)
			for _, r := range d.handler.Manifest().Access.Routes {
				if r.Opens != "" || tt.asker.machine && consoles(r) || !sample.Keep(t, r.Method, r.Path) {
					continue
				}
				rec := d.send(t, r, tt.asker)
				refused := rec.Code == http.StatusUnauthorized || rec.Code == http.StatusForbidden
				switch {
				case r.Permission == access.Public || tt.status == 0:
					if refused {
						t.Errorf("%s %s: %d %s", r.Method, r.Path, rec.Code, rec.Body)
					}
				case rec.Code != tt.status || strings.HasPrefix(r.Path, "/api/") && !strings.Contains(r.Path, "durabletask") && rec.Header().Get("x-ms-error-code") != tt.code:
					t.Errorf("%s %s: %d %s, want %d %s", r.Method, r.Path, rec.Code, rec.Body, tt.status, tt.code)
				}
			}
		})
	}
}

func development() settingstest.Environment {
	return emulator.With("AZURE_FUNCTIONS_ENVIRONMENT", "Development", "FUNCTIONS_CORETOOLS_ENVIRONMENT", "true")
}

func header(name, value string) func(r *http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// A caller gets its identity and its permissions.
func TestMe(t *testing.T) {
	t.Parallel()
	d := openDoor(t, signIn())
	me, m := Route{Route: route(http.MethodGet, "/api/me")}, d.handler.Manifest().Access
	for name, a := range askers() {
		if a.want(m, needing(access.Self)) != 0 || name == "an administrator of no known tenant" {
			continue
		}
		rec := d.send(t, me, a)
		var got struct {
			Data struct {
				Kind, ID, Scope string
				Permissions     []access.Permission
			}
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusOK {
			continue // TestPermissions checks that
		}
		if got.Data.Kind == "" || got.Data.ID == "" || (got.Data.Scope != "") != a.scoped {
			t.Errorf("%s: %s", name, rec.Body)
		}
		for _, p := range m.Permissions {
			may := a.want(m, needing(p.Name)) == 0
			if p.Name != access.Public && slices.Contains(got.Data.Permissions, p.Name) != may {
				t.Errorf("%s: %s is told as %v", name, p.Name, !may)
			}
		}
	}
}

func route(method, path string) api.Route { return api.Route{Method: method, Path: path} }

// needing returns a route that needs a permission.
func needing(p access.Permission) Route { return Route{Route: api.Route{Permission: p}} }
