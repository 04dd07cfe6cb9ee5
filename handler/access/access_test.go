package access_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/testenv"
)

const (
	home   = "11111111-1111-1111-1111-111111111111"
	other  = "22222222-2222-2222-2222-222222222222"
	object = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
	wsFed  = "http://schemas.microsoft.com/identity/claims/"
)

// principal returns the principal of a token with claims, given as pairs.
func principal(t *testing.T, p access.Policy, claims ...string) (access.Principal, error) {
	t.Helper()
	return principalOf(t, p, "aad", claims...)
}

// principalOf is principal for a token of an identity provider.
func principalOf(t *testing.T, p access.Policy, provider string, claims ...string) (access.Principal, error) {
	t.Helper()
	var parts []string
	for i := 0; i < len(claims); i += 2 {
		parts = append(parts, fmt.Sprintf(`{"typ":%q,"val":%q}`, claims[i], claims[i+1]))
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/me", nil)
	r.Header.Set("X-MS-CLIENT-PRINCIPAL", base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"auth_typ":%q,"role_typ":"my-roles","claims":[%s]}`, provider, strings.Join(parts, ","))))
	return access.Control{Policy: p, EasyAuth: true}.Principal(r)
}

// Claims of another identity provider are never those of Microsoft Entra ID.
func TestIdentityProviders(t *testing.T) {
	t.Parallel()
	const tenant = "https://login.microsoftonline.com/" + home + "/v2.0"
	for name, tt := range map[string]struct {
		provider, issuer string
		want             bool
	}{
		"entra":                     {"aad", tenant, true},
		"as version 1 has it":       {"aad", "https://sts.windows.net/" + home + "/", true},
		"in capitals":               {"AAD", strings.ToUpper("https://LOGIN") + ".microsoftonline.us/" + home + "/v2.0", true},
		"external id":               {"aad", "https://contoso.ciamlogin.com/" + home + "/v2.0", true},
		"without an issuer":         {"aad", "", true},
		"a custom one":              {"mycustomidp", "https://idp.example", false},
		"that claims the issuer":    {"google", tenant, false},
		"none":                      {"", tenant, false},
		"entra's name, custom":      {"aad", "https://idp.example", false},
		"a host that looks like it": {"aad", "https://login.microsoftonline.com.example/" + home, false},
		"in clear":                  {"aad", "http://login.microsoftonline.com/" + home, false},
		"its name as a path":        {"aad", "https://idp.example/login.microsoftonline.com", false},
	} {
		p, err := principalOf(t, access.Policy{HomeTenant: home}, tt.provider, "iss", tt.issuer, "tid", home, "oid", object, "roles", "Roundhouse.Administrator")
		if (err == nil) != tt.want || tt.want != slices.Contains(p.Roles, access.Administrator) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// Ids of the policy and of tokens are compared in normalized form: an operator stays one.
func TestSpellingsOfIDs(t *testing.T) {
	t.Parallel()
	const tenant, group = "1c2f6d3e-9e3f-4a44-8a2e-6f1d1d4a6f11", "5f0c3a1e-0000-4000-8000-00000000abcd"
	spellings := func(id string) []string {
		return []string{id, strings.ToUpper(id), "{" + id + "}", " " + id + " ", "urn:uuid:" + id, strings.ReplaceAll(id, "-", "")}
	}
	for i := range spellings(tenant) {
		policy := access.Policy{HomeTenant: spellings(tenant)[i], Operator: access.Members{Groups: []string{spellings(group)[i]}}}
		if err := policy.Validate(); err != nil {
			t.Errorf("%+v: %v", policy, err)
		}
		for _, id := range spellings(group) {
			who, err := principal(t, policy, "tid", strings.ToUpper(tenant), "oid", object, "name", "Ann", "groups", id)
			if err != nil || !slices.Contains(who.Roles, access.Operator) || who.Scope != "" || who.TenantID != tenant {
				t.Errorf("%+v, group %q: %+v, %v", policy, id, who, err)
			}
		}
	}
	for _, bad := range []access.Policy{{HomeTenant: "contoso.com"}, {HomeTenant: `"` + tenant + `"`}, {HomeTenant: "00000000-0000-0000-0000-000000000000"},
		{HomeTenant: tenant, Reader: access.Members{Groups: []string{"Operators"}}}, {Reader: access.Members{AppRoles: []string{"Support "}}}, {Reader: access.Members{AppRoles: []string{"My Role"}}}} {
		if err := bad.Validate(); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// Tokens have their own claim names, or those of WS-Federation; they distinguish users and applications.
func TestTokens(t *testing.T) {
	t.Parallel()
	policy := access.Policy{HomeTenant: strings.ToUpper(home), Operator: access.Members{AppRoles: []string{"Ops"}}}
	for name, tt := range map[string]struct {
		claims []string
		want   access.Principal
	}{
		"a person": {[]string{"tid", home, "oid", strings.ToUpper(object), "preferred_username", "ann@example.com", "name", "Ann", "scp", "user", "azp", other, "my-roles", "ops"},
			access.Principal{Kind: access.Person, TenantID: home, ObjectID: object, Name: "ann@example.com", AppRoles: []string{"ops"}, Roles: []access.Role{access.Operator}}},
		"as WS-Federation has it": {[]string{wsFed + "tenantid", other, wsFed + "objectidentifier", object, wsFed + "scope", "user", "appid", home, "name", "Ann",
			"http://schemas.microsoft.com/ws/2008/06/identity/claims/role", "x"},
			access.Principal{Kind: access.Person, TenantID: other, ObjectID: object, Name: "Ann", AppRoles: []string{"x"}, Roles: []access.Role{access.Participant}, Scope: other}},
		"an application": {[]string{"tid", home, "oid", object, "appid", other, "roles", "roundhouse.administrator"},
			access.Principal{Kind: access.Application, TenantID: home, ObjectID: object, Name: other, AppRoles: []string{"roundhouse.administrator"}, Roles: []access.Role{access.Administrator}}},
		"one that says so": {[]string{"tid", home, "oid", object, "idtyp", "app", "azp", other, "name", "x"},
			access.Principal{Kind: access.Application, TenantID: home, ObjectID: object, Name: other, Roles: []access.Role{access.Participant}}},
		"one with too many groups": {[]string{"tid", home, "oid", object, "name", "Ann", "_claim_names", `{"groups":"src1"}`},
			access.Principal{Kind: access.Person, TenantID: home, ObjectID: object, Name: "Ann", Roles: []access.Role{access.Participant}, Overage: true}},
		"no name": {[]string{"tid", home, "oid", object, "scp", "user"},
			access.Principal{Kind: access.Person, TenantID: home, ObjectID: object, Name: object, Roles: []access.Role{access.Participant}}},
		"a name for the eye": {[]string{"tid", home, "oid", object, "name", "a\u202eb\n" + strings.Repeat("é", access.MaxName)},
			access.Principal{Kind: access.Person, TenantID: home, ObjectID: object, Name: "a\uFFFDb\uFFFD" + strings.Repeat("é", (access.MaxName-8)/2), Roles: []access.Role{access.Participant}}},
	} {
		got, err := principal(t, policy, tt.claims...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := []any{tt.want.Kind, tt.want.TenantID, tt.want.ObjectID, tt.want.Name, tt.want.AppRoles, tt.want.Roles, tt.want.Scope, tt.want.Overage}
		testenv.Equal(t, name, want, []any{got.Kind, got.TenantID, got.ObjectID, got.Name, got.AppRoles, got.Roles, got.Scope, got.Overage})
		if got.ID() != got.TenantID+"/"+object || !strings.HasPrefix(got.String(), got.ID()+" (") {
			t.Errorf("%s is %s", name, got)
		}
	}
}

// Users with the same e-mail address are different users.
func TestPeopleAreNotTheirNames(t *testing.T) {
	t.Parallel()
	ann, _ := principal(t, access.Policy{}, "tid", home, "oid", object, "preferred_username", "ann@example.com")
	mallory, _ := principal(t, access.Policy{}, "tid", other, "oid", object, "preferred_username", "ann@example.com", "name", ann.ID())
	if ann.ID() == mallory.ID() || ann.Name != mallory.Name || !strings.HasPrefix(mallory.String(), other) {
		t.Errorf("%s, %s", ann, mallory)
	}
}

// A role has the permissions of its name: less than operator changes nothing, and a sender neither decides nor
// purges.
func TestRoles(t *testing.T) {
	t.Parallel()
	for _, p := range access.Permissions() {
		for _, r := range access.Roles() {
			has := slices.Contains(r.Permissions(), p)
			switch {
			case r == access.Administrator && !has:
				t.Errorf("an administrator lacks %s", p)
			case r == access.Reader && has && p.Changes() && p != access.TasksAct:
				t.Errorf("a reader has %s", p)
			case r == access.Sender && has && p.Changes() && p != access.OrchestrationsStart && p != access.OrchestrationsSend && p != access.AcknowledgementsSend:
				t.Errorf("a sender has %s", p)
			case r == access.Participant && has != (p == access.Self || p == access.TasksRead || p == access.TasksAct):
				t.Errorf("a participant: %s is %v", p, has)
			}
		}
		if !p.Known() {
			t.Errorf("%s is not known", p)
		}
	}
	for _, r := range []access.Role{access.Reader, access.Operator} {
		for _, p := range access.Participant.Permissions() {
			if !slices.Contains(r.Permissions(), p) {
				t.Errorf("%s lacks %s of a participant", r, p)
			}
		}
	}
	if access.Permission("x").Known() || access.Permission("").Known() || len(access.Role("x").Permissions()) > 0 {
		t.Error("what does not exist is known")
	}
}

// Only a path for machines marks a request as one whose key the host has checked.
func TestMachine(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{ // "" for no mark
		"/api/machine/dlq":               "/api/dlq",
		"/API/Machine/dlq/a%2Fb":         "/api/dlq/a%2Fb",
		"/api/machine/":                  "/api/",
		"/api/machine/machine/dlq":       "/api/machine/dlq",
		"/api/machine":                   "",
		"/api/machinery/dlq":             "",
		"/api/dlq/machine/x":             "",
		"/api/dlq/../machine/dlq":        "",
		"/api/dlq/%2e%2e/machine/dlq":    "",
		"//api/machine/dlq":              "",
		"/api//machine/dlq":              "",
		"/api/m%61chine/dlq":             "",
		"/api%2Fmachine/dlq":             "",
		"/api/machine%2Fdlq":             "",
		"/api/tasks/x?next=/api/machine": "",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		before := r.URL.EscapedPath()
		got := access.Machine(r)
		if marked := access.FromMachine(got.Context()); marked != (want != "") || marked && got.URL.EscapedPath() != want || !marked && got.URL.EscapedPath() != before {
			t.Errorf("%s: %v, %s", path, marked, got.URL.EscapedPath())
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/dlq", nil)
	if !access.FromMachine(accesstest.Machine(r).Context()) || access.FromMachine(r.Context()) {
		t.Error("a request of a test")
	}
}

// For any header, the caller is anonymous, or has an id. It sees all tenants only in the home tenant, and has exactly
// the permissions of its roles.
func FuzzPrincipal(f *testing.F) {
	f.Add([]byte(`{"role_typ":"r","claims":[{"typ":"tid","val":"`+home+`"},{"typ":"oid","val":"`+object+`"},{"typ":"r","val":"Roundhouse.Administrator"}]}`), true)
	f.Add([]byte(`{"claims":[{"typ":"tid","val":"`+other+`"},{"typ":"oid","val":"`+object+`"},{"typ":"roles","val":"Roundhouse.Administrator"},{"typ":"groups","val":"`+home+`"}]}`), false)
	f.Add([]byte(`{"claims":null}`), true)
	control := access.Control{EasyAuth: true, Policy: access.Policy{HomeTenant: home, OtherTenants: access.Reader}}
	f.Fuzz(func(t *testing.T, header []byte, machine bool) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/tasks", nil)
		r.Header.Set("X-MS-CLIENT-PRINCIPAL", base64.StdEncoding.EncodeToString(header))
		if machine {
			r = accesstest.Machine(r)
		}
		p, err := control.Principal(r)
		if err != nil || len(header) == 0 {
			if len(p.Permissions()) > 0 && len(header) > 0 {
				t.Errorf("%s: %v with %v", header, err, p.Permissions())
			}
			return
		}
		switch {
		case p.ID() == "" || p.Name == "" || len(p.String()) > 256 || !utf8.ValidString(p.String()) || p.Kind == access.Key || p.Kind == access.Local:
			t.Errorf("%s is %+v", header, p)
		case (p.Scope == "") != strings.EqualFold(p.TenantID, home), p.Scope != "" && (p.May(access.AuditRead) || p.May(access.OrchestrationsStart)):
			t.Errorf("%s is %+v", header, p)
		}
	})
}

// The table of docs/security.md lists the roles.
func TestDocumentedRoles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/security.md")
	testenv.OK(t, err)
	columns := []access.Role{access.Participant, access.Reader, access.Operator, access.Administrator, access.Sender}
	documented := map[access.Permission]bool{access.Self: true} // everybody's
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 10 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		p := access.Permission(strings.Trim(cells[1], " `"))
		documented[p] = true
		for i, r := range columns {
			if got := strings.TrimSpace(cells[3+i]) == "yes"; got != slices.Contains(r.Permissions(), p) {
				t.Errorf("%s of %s: documented as %v", p, r, got)
			}
		}
		if got := strings.TrimSpace(cells[8]) == "yes"; got == p.Platform() {
			t.Errorf("%s for tenants: documented as %v", p, got)
		}
	}
	for _, p := range access.Permissions() {
		if !documented[p] {
			t.Errorf("%s is not documented", p)
		}
	}
}
