// Package intake serves the intakes of engines (engine.Intake): HTTP endpoints whose requests become messages of
// engines' queues; and it authenticates senders.
//
// Promises:
//   - A message is accepted (with a status of success) only when it is in its queue. Other answers make the sender
//     retry a request that may succeed later; permanent errors get 4xx.
//   - A sender gets its answer well within the ten seconds that senders wait: Config.Timeout bounds a request.
//   - The sender is authenticated before the body is read, or, if the body is signed, before it is used; the body is
//     bounded, and one that its engine cannot decode is refused with 400.
//   - A repeated request of a sender has the same correlation id, if its engine derives one. A body that exceeds a
//     queue message goes into a blob (engine.Claims).
//
// Bodies, tokens and keys are never logged. The package owns no storage keys.
package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/queues"
)

const (
	// DefaultTimeout is the default of Config.Timeout.
	DefaultTimeout = 8 * time.Second
	// maxBody bounds a body in bytes: an alert may have 256 KiB.
	maxBody = 512 << 10
)

// Config configures the intakes. Queues and Claims are required.
type Config struct {
	Queues queues.Store
	Claims *engine.Claims
	// Engines are the engines with intakes; a closed intake does not exist.
	Engines []engine.Definition
	// Ready waits until messages can be accepted, or returns the reason why not; nil means always ready.
	Ready func(ctx context.Context) error
	// Timeout bounds one request; DefaultTimeout when 0, and less than 10 s.
	Timeout time.Duration
	// Now is the clock of the answers; time.Now when nil.
	Now func() time.Time
	// Log logs one record for every request; nil means no log.
	Log *slog.Logger
}

// Validate returns all errors of the configuration, joined into one.
func (c Config) Validate() error {
	var errs []error
	if c.Queues == nil || c.Claims == nil {
		errs = append(errs, errors.New("queues and claims are required"))
	}
	if c.Timeout < 0 || c.Timeout >= 10*time.Second {
		errs = append(errs, fmt.Errorf("timeout %v: senders wait for 10 s", c.Timeout))
	}
	return errors.Join(errs...)
}

// intake is the shared state of the routes.
type intake struct {
	ready   func(ctx context.Context) error
	queues  queues.Store
	claims  *engine.Claims
	timeout time.Duration
	now     func() time.Time
	log     *slog.Logger
}

// route is one intake of an engine.
type route struct {
	engine.Intake
	path   string
	target engine.Definition
}

func (c Config) routes() []route {
	var routes []route
	for _, d := range c.Engines {
		for _, i := range d.Intakes {
			if !i.Closed {
				i.Status = cmp.Or(i.Status, http.StatusAccepted)
				if i.Adapt != nil {
					d.Adapt = i.Adapt
				}
				routes = append(routes, route{i, "/api/" + i.Route, d})
			}
		}
	}
	return routes
}

// Register mounts the intakes on e, in any letter case of their paths, as the host matches them. If c.Validate
// returns an error, Register returns it and registers nothing.
func Register(e *echo.Echo, c Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("register the intakes: %w", err)
	}
	in := &intake{ready: c.Ready, queues: c.Queues, claims: c.Claims, timeout: c.Timeout, now: c.Now, log: c.Log}
	if in.timeout == 0 {
		in.timeout = DefaultTimeout
	}
	if in.now == nil {
		in.now = time.Now
	}
	if in.log == nil {
		in.log = slog.New(slog.DiscardHandler)
	}
	routes := c.routes()
	e.Pre(canonicalPaths(routes))
	for _, r := range routes {
		// As in the API: a route of one method would leave the others to the route of the host's invocations.
		e.RouteNotFound(r.path, in.serve(r))
	}
	return nil
}
