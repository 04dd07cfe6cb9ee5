package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
)

// DefaultTimeout is how long a request may take when Config does not say.
const DefaultTimeout = 30 * time.Second

// maxBody bounds what is read of a request's body, in bytes.
const maxBody = 256 << 10

// Config says what the API shows.
type Config struct {
	// History and DeadLetters are the tables; both are required.
	History     *engine.History
	DeadLetters *engine.DeadLetters
	// Engines are the engines of the deployment context, at least one: lists show these, and no other is known.
	Engines []string
	// Timeout bounds one request; 0 means DefaultTimeout.
	Timeout time.Duration
	// Now is the clock of the envelopes; nil means time.Now.
	Now func() time.Time
	// Log takes one record for every answer of 500 and above; nil means no log.
	Log *slog.Logger
}

// Validate reports everything that is wrong with the configuration, joined into one error.
func (c Config) Validate() error {
	var errs []error
	if c.History == nil || c.DeadLetters == nil {
		errs = append(errs, errors.New("both tables are needed"))
	}
	if len(c.Engines) == 0 || slices.Contains(c.Engines, "") {
		errs = append(errs, errors.New("name at least one engine, and none without a name"))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout %v: it must not be negative", c.Timeout))
	}
	return errors.Join(errs...)
}

// api is what the endpoints share.
type api struct {
	history *engine.History
	letters *engine.DeadLetters
	engines []string
	timeout time.Duration
	now     func() time.Time
	log     *slog.Logger
}

// endpoint answers one method of one resource: with a reply, or an error that failureOf understands.
type endpoint func(ctx context.Context, r *request) (reply, error)

// resource is a path and what it answers to. Segments of the path that begin with a colon are parameters.
type resource struct {
	path    string
	methods map[string]endpoint
}

func (a *api) resources() []resource {
	return []resource{
		{"/api/history", map[string]endpoint{http.MethodGet: a.listHistory}},
		{"/api/history/:engine/:rowKey", map[string]endpoint{http.MethodGet: a.getHistory}},
		{"/api/dlq", map[string]endpoint{http.MethodGet: a.listDeadLetters}},
		{"/api/dlq/:engine/:rowKey", map[string]endpoint{http.MethodGet: a.getDeadLetter}},
	}
}

// Route is one method of one path of the API; segments that begin with a colon are parameters.
type Route struct{ Method, Path string }

// Routes lists everything that the API answers to. Register cannot be asked: it takes every method of a path.
func Routes() []Route {
	var routes []Route
	for _, r := range (&api{}).resources() {
		for method := range r.methods {
			routes = append(routes, Route{method, r.path})
		}
	}
	return routes
}

// Register mounts the API on e, which answers to everything below /api from then on, and puts paths below /api into
// their canonical form before e routes them. It returns the error of c.Validate and then registers nothing.
func Register(e *echo.Echo, c Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("register the API: %w", err)
	}
	a := &api{
		history: c.History,
		letters: c.DeadLetters,
		engines: slices.Compact(slices.Sorted(slices.Values(c.Engines))),
		timeout: cmp.Or(c.Timeout, DefaultTimeout),
		now:     c.Now,
		log:     cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
	}
	if a.now == nil {
		a.now = time.Now
	}
	resources := a.resources()
	e.Pre(canonicalPaths(resources))
	// RouteNotFound is echo's registration for whatever method; a route of one method would leave the others to a
	// parameter route of the same server, like the one of the host's invocations.
	for _, r := range resources {
		e.RouteNotFound(r.path, a.serve(r))
	}
	nowhere := a.serve(resource{})
	e.RouteNotFound("/api", nowhere)
	e.RouteNotFound("/api/*", nowhere)
	return nil
}
