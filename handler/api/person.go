package api

import (
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// person is the caller as human tasks know people: the roles that tasks are for are the app roles of the token.
func (r *request) person() tasks.Person {
	p := r.principal()
	return tasks.Person{ID: p.ID(), Name: p.Name, Roles: p.AppRoles, TenantID: p.Scope, All: p.May(access.TasksAdminister)}
}

// principal is who sends the request.
func (r *request) principal() access.Principal { return r.call.Principal }

// by is who sends the request, for the record.
func (r *request) by() string { return r.call.Principal.String() }
