package api

import (
	"context"

	"github.com/vibedata/roundhouse/handler/access"
)

// meItem is the caller and its permissions.
type meItem struct {
	Kind        access.Kind         `json:"kind"`
	ID          string              `json:"id"`
	Name        string              `json:"name,omitempty"`
	TenantID    string              `json:"tenantId,omitempty"`
	AppRoles    []string            `json:"appRoles"`
	Roles       []access.Role       `json:"roles"`
	Permissions []access.Permission `json:"permissions"`
	// Scope is the tenant whose data the caller sees; omitted for all tenants.
	Scope string `json:"scope,omitempty"`
	// GroupsMissing means that the token does not name the caller's groups, because they are too many.
	GroupsMissing bool `json:"groupsMissing,omitempty"`
}

// me returns the caller's identity.
func (a *api) me(_ context.Context, r *request) (reply, error) {
	p := r.principal()
	return reply{data: meItem{Kind: p.Kind, ID: p.ID(), Name: p.Name, TenantID: p.TenantID, AppRoles: notNil(p.AppRoles), Roles: notNil(p.Roles),
		Permissions: p.Permissions(), Scope: p.Scope, GroupsMissing: p.Overage}}, nil
}
