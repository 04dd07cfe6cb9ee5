package access

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/handler/quota"
	"github.com/vibedata/roundhouse/internal/tenant"
)

// Kind is the kind of a caller.
type Kind string

// The kinds of callers. Nobody is an anonymous caller, without credentials.
const (
	Nobody      Kind = "nobody"
	Person      Kind = "person"
	Application Kind = "application"
	Key         Kind = "key"
	Local       Kind = "local"
)

// MaxName bounds the name of a principal, in bytes, so that it fits a column together with the id.
const MaxName = 160

// Principal is a caller. The zero value is anonymous, without permissions.
type Principal struct {
	Kind Kind
	// TenantID and ObjectID are those of a user or an application in Microsoft Entra.
	TenantID, ObjectID string
	// Name is for display: it can change and be reused.
	Name string
	// AppRoles are the app roles of the token, which human tasks use.
	AppRoles []string
	// Roles are the roles of the policy.
	Roles []Role
	// Overage means that the token does not name the principal's groups, because they are too many.
	Overage bool
	// Scope is the tenant whose data the principal sees and changes; "" for all tenants.
	Scope string

	permissions []Permission
}

// ID identifies the principal in stored data: {tenant}/{object} of users and applications, in lower case;
// function-key, and local/{user} of others; "" for an anonymous caller.
func (p Principal) ID() string {
	switch p.Kind {
	case Person, Application:
		return strings.ToLower(p.TenantID + "/" + p.ObjectID)
	case Key:
		return "function-key"
	case Local:
		return "local/" + p.Name
	default:
		return ""
	}
}

// String returns the principal for one column: its id, followed by its name.
func (p Principal) String() string {
	if p.Kind == Person || p.Kind == Application {
		return p.ID() + " (" + p.Name + ")"
	}
	return p.ID()
}

// callers returns the quota callers of the principal: itself, and its tenant if that is not the home tenant. The
// local user is not charged.
func (p Principal) callers() []quota.Caller {
	switch {
	case p.Kind == Local:
		return nil
	case p.Kind == Key:
		return []quota.Caller{{Kind: quota.Key, ID: p.ID()}}
	case p.Scope != "":
		return []quota.Caller{{Kind: quota.Principal, ID: p.ID()}, {Kind: quota.Tenant, ID: p.Scope}}
	default:
		return []quota.Caller{{Kind: quota.Principal, ID: p.ID()}}
	}
}

// admit checks the quota of the principal.
func (p Principal) admit(ctx context.Context) error {
	callers := p.callers()
	if len(callers) == 0 {
		quota.Exempt(ctx)
		return nil
	}
	return quota.Admit(ctx, callers...)
}

// May says whether the principal has a permission.
func (p Principal) May(need Permission) bool { return slices.Contains(p.permissions, need) }

// Permissions returns the permissions of the principal.
func (p Principal) Permissions() []Permission { return slices.Clone(p.permissions) }

// Sees reports whether the principal may see and change data of a tenant, "" for data without a tenant.
func (p Principal) Sees(owner string) bool {
	return tenant.Sees(p.Scope, owner)
}

// grant grants roles to a principal, and with them permissions: except for those of the whole platform, if it is
// bound to a tenant.
func (p *Principal) grant(roles ...Role) {
	p.Roles = roles
	var all []Permission
	for _, r := range roles {
		all = append(all, r.Permissions()...)
	}
	p.permissions = slices.DeleteFunc(ordered(all), func(need Permission) bool { return p.Scope != "" && need.Platform() })
}

// LocalUser returns the user of this machine, with all permissions.
func LocalUser(name string) Principal {
	p := Principal{Kind: Local, Name: readable(name)}
	p.grant(Administrator)
	return p
}

// readable returns a name for storage and display: invisible characters are replaced, and long names cut.
func readable(text string) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	for len(text) > MaxName {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	return text
}
