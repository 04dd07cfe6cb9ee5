package api

import (
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// person returns the caller as a person of human tasks: the roles of tasks are the app roles of the token.
func (r *request) person() tasks.Person {
	p := r.principal()
	return tasks.Person{ID: p.ID(), Name: p.Name, Roles: p.AppRoles, TenantID: p.Scope, All: p.May(access.TasksAdminister)}
}

// principal returns the caller.
func (r *request) principal() access.Principal { return r.call.Principal }

// by returns the caller, for records.
func (r *request) by() string { return r.call.Principal.String() }
