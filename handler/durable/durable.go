package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/api"
	"github.com/vibedata/roundhouse/orchestrator"
)

// bases returns the base addresses of the API.
func bases() []string {
	return []string{"/api/runtime/webhooks/durabletask", "/runtime/webhooks/durabletask"}
}

const (
	// maxBody bounds the bytes read of a request's body.
	maxBody = 1 << 20
	// DefaultTimeout is the default of Config.Timeout. It is below the 230 s after which the load balancer of a
	// Functions app times out.
	DefaultTimeout = 220 * time.Second
	// settle is the part of that time that a request has left for its answer after a wait.
	settle = 10 * time.Second
)

// Config configures the API.
type Config struct {
	// Runtime runs the orchestrations; required.
	Runtime *orchestrator.Runtime
	// Admit, if it is set, prepares a start for its orchestrator, or refuses it, as engine.Pipeline.Admit does.
	Admit func(ctx context.Context, s orchestrator.Start) (orchestrator.Start, error)
	// List lists orchestrations, as catalog.Catalog does; nil means Runtime.List, which reads all their rounds.
	List func(ctx context.Context, f orchestrator.Filter, limit int, continuation string) ([]orchestrator.Summary, string, error)
	// PublicURL is the address of the app for its clients, as in "https://app.azurewebsites.net": links begin with
	// it. The host name in a request is ignored, since the caller chooses it. With "" links begin with their path.
	PublicURL string
	// Door authenticates callers, and records their changes; required.
	Door access.Door
	// Owners returns the owners of engines' data, as for the API.
	Owners api.Owners
	// Timeout bounds one request, waits included; 0 means DefaultTimeout.
	Timeout time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log logs failures; nil means no log.
	Log *slog.Logger
}

// server is the shared state of the endpoints.
type server struct {
	Config
}

// Register mounts the API on e. It returns an error for an invalid c.
func Register(e *echo.Echo, c Config) error {
	if c.Runtime == nil || c.Timeout < 0 {
		return errors.New("register the API of Durable Functions: a runtime is required, and a time-out that is not negative")
	}
	if c.List == nil {
		c.List = c.Runtime.List
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := c.Door.Validate(); err != nil {
		return fmt.Errorf("register the API of Durable Functions: %w", err)
	}
	s := &server{c}
	e.Pre(canonical)
	for _, base := range bases() {
		// As in the API, for any method: other routes of the server must not match them.
		e.RouteNotFound(base, s.serve)
		e.RouteNotFound(base+"/*", s.serve)
	}
	return nil
}

// canonical converts the base address to its own case.
func canonical(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		u := c.Request().URL
		if base, rest, ok := split(u); ok {
			escaped := base + rest
			if path, err := url.PathUnescape(escaped); err == nil {
				u.Path, u.RawPath = path, escaped
			}
		}
		return next(c)
	}
}

// split splits a path: the base address, and the rest, which begins with a slash or is empty, still escaped.
func split(u *url.URL) (base, rest string, ok bool) {
	path := u.EscapedPath()
	for _, base := range bases() {
		if len(path) >= len(base) && strings.EqualFold(path[:len(base)], base) && (len(path) == len(base) || path[len(base)] == '/') {
			return base, path[len(base):], true
		}
	}
	return "", "", false
}

// Routes lists the routes of the API, like api.Routes, at the address that a Functions host forwards.
func Routes() []api.Route {
	base := bases()[0]
	routes := []api.Route{
		{Method: http.MethodPost, Path: base + "/orchestrators/:name/:instance", Permission: access.OrchestrationsStart},
		{Method: http.MethodPost, Path: base + "/instances/:instance/raiseEvent/:event", Permission: access.OrchestrationsSend},
		{Method: http.MethodPost, Path: base + "/makeprimary", Permission: access.Self},
		{Method: http.MethodGet, Path: base + "/entities/:name/:key", Permission: access.Self},
	}
	for _, path := range []string{"/instances", "/instances/:instance"} {
		routes = append(routes, api.Route{Method: http.MethodGet, Path: base + path, Permission: access.OrchestrationsRead},
			api.Route{Method: http.MethodDelete, Path: base + path, Permission: access.OrchestrationsPurge})
	}
	for operation := range (&server{}).operations() {
		routes = append(routes, api.Route{Method: http.MethodPost, Path: base + "/instances/:instance/" + operation, Permission: access.OrchestrationsCommand})
	}
	return routes
}

// call is a request in progress.
type call struct {
	ctx  context.Context
	http *http.Request
	base string // its base address, which links use
	path []string
	query

	door  *access.Call
	after string // the new state of a change's target
}

// serve handles every request: its limits, its endpoint, its answer.
func (s *server) serve(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), s.Timeout)
	defer cancel()
	r := c.Request().WithContext(ctx)
	r.Body = http.MaxBytesReader(c.Response(), r.Body, maxBody)
	base, rest, _ := split(r.URL)
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		q = r.URL.Query() // its readable part
	}
	in := &call{ctx: ctx, http: r, query: query(q)}
	in.base = s.PublicURL + in.outside(base)
	for part := range strings.SplitSeq(strings.Trim(rest, "/"), "/") {
		word, err := url.PathUnescape(part)
		if err != nil || word == "" {
			in.path = nil
			break
		}
		in.path = append(in.path, word)
	}
	out := s.answer(in)
	return out.send(c, in.door)
}

// answer finds the endpoint and runs it.
func (s *server) answer(in *call) (out answer) {
	defer func() {
		if p := recover(); p != nil {
			out = s.failed(in, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	e := s.route(in)
	if e.run == nil {
		return nothing(http.StatusNotFound)
	}
	var err error
	if in.door, err = s.Door.Enter(in.ctx, in.http, e.need, in.correlationID()); err != nil {
		return s.failed(in, err)
	}
	defer func() { in.door.End(in.ctx, in.after, err) }()
	err = errPanicked // unless it returns
	out, err = e.run(in)
	if err != nil {
		return s.failed(in, err)
	}
	return out
}

// errPanicked is the audit log's error of a change whose endpoint panicked.
var errPanicked = errors.New("the endpoint panicked")

// correlationID returns the caller's id of the request, or a new one.
func (in *call) correlationID() string { return api.CorrelationID(in.http.Header) }

// endpoint is the permission of a request, and its function, whose errors failed understands; the zero value is none.
type endpoint struct {
	need access.Permission
	run  func(in *call) (answer, error)
}

// operations returns the operations on an instance, by their names in lower case.
func (s *server) operations() map[string]endpoint {
	return map[string]endpoint{
		"terminate": s.told("terminate", (*orchestrator.Runtime).Terminate),
		"suspend":   s.told("suspend", (*orchestrator.Runtime).Suspend),
		"resume":    s.told("resume", (*orchestrator.Runtime).Resume),
		"rewind":    {access.OrchestrationsCommand, s.rewind},
		"restart":   {access.OrchestrationsCommand, s.restart},
	}
}

// route finds the endpoint of a request.
func (s *server) route(in *call) endpoint {
	method := in.http.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	switch words := len(in.path); {
	case words == 0:
		return endpoint{}
	case in.is(0, "orchestrators") && (words == 2 || words == 3) && method == http.MethodPost:
		return endpoint{access.OrchestrationsStart, s.start}
	case in.is(0, "instances") && words == 1:
		return map[string]endpoint{http.MethodGet: {access.OrchestrationsRead, s.list}, http.MethodDelete: {access.OrchestrationsPurge, s.purgeMany}}[method]
	case in.is(0, "instances") && words == 2:
		return map[string]endpoint{http.MethodGet: {access.OrchestrationsRead, s.status}, http.MethodDelete: {access.OrchestrationsPurge, s.purge}}[method]
	case in.is(0, "instances") && words == 3 && method == http.MethodPost:
		return s.operations()[strings.ToLower(in.path[2])]
	case in.is(0, "instances") && words == 4 && in.is(2, "raiseEvent") && method == http.MethodPost:
		return endpoint{access.OrchestrationsSend, s.raise}
	case in.is(0, "entities") && words <= 3:
		return endpoint{access.Self, func(*call) (answer, error) {
			return message(http.StatusNotImplemented, "There are no entities here: an orchestration that waits for events does their work.", nil), nil
		}}
	case in.is(0, "makeprimary") && words == 1:
		return endpoint{access.Self, func(*call) (answer, error) { return nothing(http.StatusOK), nil }}
	default:
		return endpoint{}
	}
}

// is compares a word of the path.
func (in *call) is(at int, word string) bool { return strings.EqualFold(in.path[at], word) }

// instance returns the id in the path.
func (in *call) instance() string { return in.path[1] }
