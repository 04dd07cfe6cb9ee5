package handler

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/handler/quota"
)

// httpFunctions returns the HTTP functions of every app that the API answers. Most exist twice: for users and
// applications, whom the platform authenticates and the API authorizes, and for machines with a function key, which
// the host checks. The public probes and the console, which no machine needs, exist once.
func httpFunctions() []function.Function {
	all := []function.Function{
		function.HTTP("health-live", "health/live", function.Anonymous, "get"),
		function.HTTP("health-ready", "health/ready", function.Anonymous, "get"),
		function.HTTP("health", "health/full", function.Anonymous, "get"),
		function.HTTP("metrics", "metrics", function.Anonymous, "get"),
		function.HTTP("openapi", "openapi.json", function.Anonymous, "get"),
		function.HTTP("me", "me", function.Anonymous, "get"),
		function.HTTP("audit", "audit", function.Anonymous, "get"),
		function.HTTP("engines", "engines", function.Anonymous, "get"),
		function.HTTP("history", "history/{*path}", function.Anonymous, "get"),
		function.HTTP("dlq", "dlq/{*path}", function.Anonymous, "get", "post", "patch"),
		function.HTTP("timeline", "timeline/{*path}", function.Anonymous, "get"),
		function.HTTP("tasks", "tasks/{*path}", function.Anonymous, "get", "post"),
		function.HTTP("acknowledgements", "acknowledgements", function.Anonymous, "get", "post"),
		function.HTTP("credentials", "credentials", function.Anonymous, "get"),
		function.HTTP("orchestrations", "orchestrations/{*path}", function.Anonymous, "get", "post", "delete"),
		function.HTTP("registry", "registry/{*path}", function.Anonymous, "get", "post", "patch", "delete"),
		function.HTTP("schedules", "schedules/{*path}", function.Anonymous, "get", "post"),
		function.HTTP("nodes", "nodes", function.Anonymous, "get"),
		function.HTTP("operations", "operations/{*path}", function.Anonymous, "get", "post"),
		function.HTTP("pollers", "pollers/{*path}", function.Anonymous, "get", "post"),
		function.HTTP("outbox", "workflow/outbox/{*path}", function.Anonymous, "get", "post"),
		function.HTTP("console", "console/{*path}", function.Anonymous, "get", "post"),
		// The host refuses a route that begins with runtime, and a parameter begins with anything.
		function.HTTP("durabletask", "{runtime}/webhooks/durabletask/{*path}", function.Anonymous, "get", "post", "delete"),
	}
	for _, f := range all {
		if trigger := f.Bindings[0]; !slices.Contains([]string{"health-live", "health-ready", "console"}, f.Name) {
			route := strings.TrimPrefix(access.MachinePrefix, "/api/") + strings.Replace(trigger.Route, "{runtime}", "runtime", 1)
			all = append(all, function.HTTP("machine-"+f.Name, route, function.Key, trigger.Methods...))
		}
	}
	return all
}

// engineFunctions returns the HTTP functions of an engine.
func engineFunctions(d engine.Definition) []function.Function {
	var all []function.Function
	for _, i := range d.Intakes {
		all = append(all, function.HTTP(i.Function, i.Route, level(i.Authorize != nil || i.Verify != nil || i.Closed), "post"))
	}
	for _, e := range d.Endpoints {
		all = append(all, endpointFunction(e))
	}
	return all
}

func endpointFunction(e engine.Endpoint) function.Function {
	methods := slices.Clone(e.Methods)
	for n := range methods {
		methods[n] = strings.ToLower(methods[n])
	}
	return function.HTTP(e.Function, e.Route, level(e.Anonymous), methods...)
}

func level(anonymous bool) function.Level {
	if anonymous {
		return function.Anonymous
	}
	return function.Key
}

// parameter matches a parameter in a route of the host.
var parameter = regexp.MustCompile(`\{([a-z]+)\}`)

// mount registers the endpoints of an engine. A parameter of a route is the request's path value. A request's context
// ends after the timeout, and a request before ready returns nil is answered with 503.
func mount(e *echo.Echo, endpoints []engine.Endpoint, timeout time.Duration, ready func(context.Context) error) {
	for _, endpoint := range endpoints {
		path := "/api/" + parameter.ReplaceAllString(endpoint.Route, ":$1")
		for _, method := range endpointFunction(endpoint).Bindings[0].Methods {
			e.Add(strings.ToUpper(method), path, func(c echo.Context) error {
				ctx, cancel := context.WithTimeout(c.Request().Context(), timeout)
				defer cancel()
				r := c.Request().WithContext(ctx)
				for _, name := range c.ParamNames() {
					value, err := url.PathUnescape(c.Param(name)) // the router sees encoded paths
					if err != nil {
						return echo.ErrNotFound
					}
					r.SetPathValue(name, value)
				}
				if ready(ctx) != nil {
					c.Response().Header().Set("Retry-After", "5")
					return echo.NewHTTPError(http.StatusServiceUnavailable, "the app has started, and its storage cannot be used yet")
				}
				if exceeded, ok := errors.AsType[*quota.ExceededError](quota.Admit(ctx)); ok {
					exceeded.Refuse(c.Response())
					return nil
				}
				endpoint.Handler.ServeHTTP(c.Response(), r)
				return nil
			})
		}
	}
}
