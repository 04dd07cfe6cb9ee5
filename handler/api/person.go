package api

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// maxPrincipal bounds the header in which the platform says who calls, in bytes: what a web server takes of one.
const maxPrincipal = 16 << 10

// principal is a caller as the platform's Easy Auth describes it.
type principal struct {
	NameType string  `json:"name_typ"`
	RoleType string  `json:"role_typ"`
	Claims   []claim `json:"claims"`
}

type claim struct {
	Type  string `json:"typ"`
	Value string `json:"val"`
}

// principal is who the platform says that calls; nil when it does not say. The header is the platform's only where the
// platform has Easy Auth enabled, which then takes it off what comes from outside; elsewhere anybody can write it, so it
// says nothing.
func (a *api) principal(r *request) *principal {
	header := r.http.Header.Get("X-MS-CLIENT-PRINCIPAL")
	if !a.easyAuth || header == "" || len(header) > maxPrincipal {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(header)
	var p principal
	if err != nil || json.Unmarshal(text, &p) != nil {
		return nil
	}
	return &p
}

// first is the first value of the claims of these types, in this order; "" for none.
func (p *principal) first(types ...string) string {
	for _, typ := range types {
		at := slices.IndexFunc(p.Claims, func(c claim) bool { return typ != "" && c.Type == typ && c.Value != "" })
		if at >= 0 {
			return p.Claims[at].Value
		}
	}
	return ""
}

// roles are the roles of the caller.
func (p *principal) roles() []string {
	var roles []string
	for _, c := range p.Claims {
		if c.Value != "" && slices.Contains([]string{p.RoleType, "roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role"}, c.Type) {
			roles = append(roles, c.Value)
		}
	}
	return roles
}

// person is the caller as human tasks know people. Who has a function key and nothing else may do everything: the key is
// the platform's own. A caller whom the platform has authenticated has the roles of the token; those of the home tenant see
// the tasks of all tenants, others those of their own.
func (a *api) person(r *request) (tasks.Person, error) {
	p := a.principal(r)
	name := a.identity(r)
	if p == nil && r.http.Header.Get("X-MS-CLIENT-PRINCIPAL") != "" && a.easyAuth || p != nil && name == keyIdentity {
		return tasks.Person{}, forbidden("The platform does not say who you are in a way that can be read.")
	}
	if p == nil {
		return tasks.Person{Name: name, All: true}, nil
	}
	tenant := p.first("tid", "http://schemas.microsoft.com/identity/claims/tenantid")
	if tenant == "" {
		return tasks.Person{}, forbidden("Your token names no tenant. Sign in with Microsoft Entra ID.")
	}
	person := tasks.Person{Name: name, Roles: p.roles(), TenantID: tenant}
	if a.homeTenant != "" && strings.EqualFold(tenant, a.homeTenant) {
		person.TenantID = ""
		person.All = a.adminRole != "" && slices.ContainsFunc(person.Roles, func(role string) bool { return strings.EqualFold(role, a.adminRole) })
	}
	return person, nil
}

func forbidden(text string) *failure {
	return &failure{status: http.StatusForbidden, problem: problem{Code: codeForbidden, Message: text}}
}
