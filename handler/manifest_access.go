package handler

import (
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/handler/durable"
	"github.com/vibedata/roundhouse/handler/function"
)

// Access lists the permissions in an app, as far as its settings do not change them: ROUNDHOUSE_ROLES assigns the
// roles.
type Access struct {
	Permissions []Permission `json:"permissions"`
	// Roles are the permissions of each role.
	Roles map[access.Role][]access.Permission `json:"roles"`
	// Routes are the HTTP routes. Those of the API exist again below /api/machine/, for keys. HEAD is answered
	// wherever GET is.
	Routes []Route `json:"routes"`
}

// Permission describes a permission.
type Permission struct {
	Name access.Permission `json:"name"`
	// Changes means that its use is recorded in the audit log, Platform that callers of one tenant cannot have it.
	Changes  bool `json:"changes,omitempty"`
	Platform bool `json:"platform,omitempty"`
}

// Route is one method of one path; segments that begin with a colon are parameters.
type Route struct {
	api.Route
	// Engine is the engine of the route, and Opens its authentication instead of a permission: "key" for a function
	// key, "engine" if the engine itself authenticates the sender.
	Engine string `json:"engine,omitempty"`
	Opens  string `json:"opens,omitempty"`
}

// access describes the permissions.
func (p *parts) access() Access {
	out := Access{Roles: map[access.Role][]access.Permission{}}
	for _, permission := range append([]access.Permission{access.Public}, access.Permissions()...) {
		out.Permissions = append(out.Permissions, Permission{permission, permission.Changes(), permission.Platform()})
	}
	for _, role := range access.Roles() {
		out.Roles[role] = role.Permissions()
	}
	for _, r := range slices.Concat(api.Routes(), console.Routes(), durable.Routes()) {
		out.Routes = append(out.Routes, Route{Route: r})
	}
	for _, d := range p.definitions {
		out.Routes = append(out.Routes, engineRoutes(d)...)
	}
	return out
}

// engineRoutes returns the routes of an engine's functions.
func engineRoutes(d engine.Definition) []Route {
	var routes []Route
	for _, f := range engineFunctions(d) {
		opens := "key"
		if f.Bindings[0].AuthLevel != function.Key {
			opens = "engine"
		}
		path := "/api/" + parameter.ReplaceAllString(f.Bindings[0].Route, ":$1")
		for _, method := range f.Bindings[0].Methods {
			if method == "head" {
				continue
			}
			routes = append(routes, Route{api.Route{Method: strings.ToUpper(method), Path: path}, d.Name, opens})
		}
	}
	return routes
}
