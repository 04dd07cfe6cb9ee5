package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/vibedata/roundhouse/internal/entraid"
)

// Policy assigns roles. Its zero value assigns Reader, Operator and Administrator to the app roles Roundhouse.Reader,
// Roundhouse.Operator and Roundhouse.Administrator, at most Participant to tenants other than the home tenant, and
// everything to the keys of an app without sign-in.
type Policy struct {
	// HomeTenant is the tenant whose users and applications see all tenants; "" for none.
	HomeTenant string `json:"-"`
	// Reader, Operator and Administrator list the members of the role.
	Reader        Members `json:"reader"`
	Operator      Members `json:"operator"`
	Administrator Members `json:"administrator"`
	// OtherTenants is the highest role of users and applications of tenants other than the home tenant, regardless of
	// the roles that their tenants assign: Participant (""), Reader or Operator.
	OtherTenants Role `json:"otherTenants"`
	// Keys is the role of a function key alone: Administrator, Sender, or "none". "" means Sender with sign-in, and
	// Administrator without.
	Keys string `json:"keys"`
}

// Members are the members of a role.
type Members struct {
	// AppRoles are the values of app roles, compared without case. An empty list means Roundhouse. and the name of
	// the role.
	AppRoles []string `json:"appRoles"`
	// Groups are the object ids of groups in Microsoft Entra.
	Groups []string `json:"groups"`
}

// noRole is the value of Keys for keys without permissions.
const noRole = "none"

// Validate returns all errors of the policy, joined into one.
func (p Policy) Validate() error {
	var errs []error
	if _, err := entraid.Parse(p.HomeTenant); err != nil && p.HomeTenant != "" {
		errs = append(errs, fmt.Errorf("the home tenant %.64q: %w", p.HomeTenant, err))
	}
	for role, members := range p.members() {
		for _, name := range members.AppRoles {
			if name == "" || strings.ContainsFunc(name, unicode.IsSpace) {
				errs = append(errs, fmt.Errorf("%s: the app role %.64q: values of app roles have no white space and are not empty", role, name))
			}
		}
		for _, group := range members.Groups {
			if _, err := entraid.Parse(group); err != nil {
				errs = append(errs, fmt.Errorf("%s: the group %.64q: give its object id: %w", role, group, err))
			}
		}
		if len(members.Groups) > 0 && p.HomeTenant == "" {
			errs = append(errs, fmt.Errorf("%s: groups are those of the home tenant, and there is none", role))
		}
	}
	if !slices.Contains([]Role{"", Participant, Reader, Operator}, p.OtherTenants) {
		errs = append(errs, fmt.Errorf("otherTenants %.32q: it is participant, reader or operator", p.OtherTenants))
	}
	if !slices.Contains([]string{"", noRole, string(Sender), string(Administrator)}, p.Keys) {
		errs = append(errs, fmt.Errorf("keys %.32q: it is administrator, sender or none", p.Keys))
	}
	return errors.Join(errs...)
}

// members returns those of the roles that can be assigned to users and applications.
func (p Policy) members() map[Role]Members {
	return map[Role]Members{Reader: p.Reader, Operator: p.Operator, Administrator: p.Administrator}
}

// has reports whether a token makes its owner a member.
func (m Members) has(role Role, t token, p Principal, home bool) bool {
	names := m.AppRoles
	if len(names) == 0 {
		names = []string{"Roundhouse." + string(role)}
	}
	if slices.ContainsFunc(p.AppRoles, func(has string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, has) })
	}) {
		return true
	}
	return home && slices.ContainsFunc(t.all(groupClaims), func(has string) bool {
		return slices.ContainsFunc(m.Groups, func(group string) bool { return entraid.Same(group, has) })
	})
}

// admit returns the principal of a token with its scope and roles. Tenants assign the app roles of a multi-tenant
// application to their own users as they like, so roles from other tenants are bounded.
func (p Policy) admit(who Principal, t token) Principal {
	home := p.HomeTenant != "" && entraid.Same(who.TenantID, p.HomeTenant)
	if !home {
		who.Scope = who.TenantID
	}
	role := Participant
	for _, candidate := range []Role{Administrator, Operator, Reader} {
		if p.members()[candidate].has(candidate, t, who, home) {
			role = candidate
			break
		}
	}
	if !home {
		role = lesser(role, p.OtherTenants)
	}
	who.grant(role)
	return who
}

// lesser returns the role with fewer permissions; "" counts as Participant.
func lesser(a, b Role) Role {
	order := []Role{Participant, Reader, Operator, Administrator}
	return order[min(max(0, slices.Index(order, a)), max(0, slices.Index(order, b)))]
}

// keyHolder returns the principal of a function key alone. people means that users sign in.
func (p Policy) keyHolder(people bool) Principal {
	who := Principal{Kind: Key}
	role := Role(p.Keys)
	if role == "" && people {
		role = Sender
	} else if role == "" {
		role = Administrator
	}
	if role != noRole {
		who.grant(role)
	}
	return who
}
