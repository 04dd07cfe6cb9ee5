package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/entraid"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// person returns the caller as a person of human tasks: the roles of tasks are the app roles of the token.
func (r *request) person() tasks.Person {
	p := r.principal()
	return tasks.Person{ID: p.ID(), Name: p.Name, Roles: p.AppRoles, TenantID: p.Scope, All: p.May(access.TasksAdminister)}
}

// assignable checks that an assignee can see the assigned object. The assignee is of the caller's tenant or, for
// callers of the home tenant, of the home tenant or the owner's.
func (r *request) assignable(id, owner string) error {
	p := r.principal()
	of, object, _ := strings.Cut(id, "/")
	_, ofErr := entraid.Parse(of)
	_, objectErr := entraid.Parse(object)
	known, home := ofErr == nil && objectErr == nil, r.call.HomeTenant()
	switch {
	case p.Scope != "" && known && strings.EqualFold(of, p.Scope):
		return nil
	case p.Scope == "" && (!known || home == "" || entraid.Same(of, home) || entraid.Same(of, owner)):
		return nil
	}
	return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidParameter, Target: "assignee",
		Message: "Give the id of a person who can see it, as {tenant id}/{object id}: GET /api/me shows one's own."}}
}

// conceal replaces the names of principals of the home tenant in conflicts, for callers of another tenant.
func (r *request) conceal(err error) {
	if conflict, ok := errors.AsType[*tasks.ConflictError](err); ok && r.call.Hides(conflict.By) {
		conflict.ByName = access.Operators
	}
	if held, ok := errors.AsType[*engine.HeldError](err); ok && r.call.Hides(held.By) {
		held.Name = access.Operators
	}
}

// principal is who sends the request.
func (r *request) principal() access.Principal { return r.call.Principal }

// by returns the caller, for records.
func (r *request) by() string { return r.call.Principal.String() }
