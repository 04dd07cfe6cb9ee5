package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/handler/quota"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

const (
	// idleTimeout outlives the host's pooled connections (1 to 2 minutes): if the server closed one while the host
	// sends on it, the invocation would fail, and the host does not repeat a POST.
	idleTimeout       = 5 * time.Minute
	readHeaderTimeout = 10 * time.Second

	// settle is the time that handlers have to return after their contexts have ended.
	settle = 2 * time.Second
)

var errStopping = errors.New("the program is stopping")

// newRouter registers all endpoints of the program.
func newRouter(a program, s settings.Settings, log *slog.Logger) (*echo.Echo, error) {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Use(counting(a.Requests), traceRequests(a.Traces), metered(a.Quota), answerPanics(log))
	e.Pre(wholeBodies)
	e.Pre(paths)
	e.Pre(hurried)
	if a.API != nil {
		if err := a.API(e); err != nil {
			return nil, err
		}
	}
	err := trigger.Mount(e, trigger.Config{Queues: a.Queues, Timers: a.Timers, Budget: s.Budget, Ready: a.Preparation.Await, Gate: a.Gate, Observe: a.Observe, Log: log})
	return e, err
}

// paths reverts the changes of the host's proxy in a path. It maps the addresses for machines to those for users,
// with the mark that the host has checked a key.
func paths(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		urlpath.Restore(c.Request().URL)
		c.SetRequest(access.Machine(c.Request()))
		return next(c)
	}
}

// hurried makes requests fail immediately while storage does not answer: their senders retry. Invocations of queue
// and timer functions wait.
func hurried(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.SetRequest(c.Request().WithContext(outage.Hurry(c.Request().Context())))
		return next(c)
	}
}

// metered charges the storage calls of HTTP requests to their callers. Invocations of queue and timer functions have
// no callers.
func metered(q *quota.Quota) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if route := c.Path(); route == "/" || route == trigger.Route {
				return next(c)
			}
			ctx, end := q.Track(c.Request().Context(), quota.AddressOf(c.Request()))
			defer end()
			c.SetRequest(c.Request().WithContext(ctx))
			return next(c)
		}
	}
}

// answerPanics answers a request whose handler panics with 500. Without an answer the connection would be closed, and
// the host repeats a proxied request on that up to 40 times.
func answerPanics(log *slog.Logger) echo.MiddlewareFunc {
	return middleware.RecoverWithConfig(middleware.RecoverConfig{LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
		log.Error("request panicked", "method", c.Request().Method, "route", c.Path(), "panic", err.Error(), "stack", string(stack))
		return echo.NewHTTPError(http.StatusInternalServerError)
	}})
}

// server is the HTTP server that the Functions host calls.
type server struct {
	http     *http.Server
	listener net.Listener
	stop     context.CancelCauseFunc // ends the context of every request
}

// listen opens the port on the loopback interface only: every client of it is trusted as the host.
func listen(s settings.Settings, h http.Handler, log *slog.Logger) (*server, error) {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)))
	if err != nil {
		return nil, fmt.Errorf("listen on the port that the host has given: %w", err)
	}
	base, stop := context.WithCancelCause(context.Background())
	return &server{
		listener: listener,
		stop:     stop,
		// No write timeout: an invocation may take its whole budget, and a forwarded request has none.
		http: &http.Server{
			Handler:           h,
			ReadHeaderTimeout: readHeaderTimeout,
			IdleTimeout:       idleTimeout,
			BaseContext:       func(net.Listener) context.Context { return base },
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}, nil
}

// serve answers until shutdown is called.
func (s *server) serve() error {
	return s.http.Serve(s.listener)
}

// shutdown accepts no more requests and waits for those in flight, up to the given time; then it ends the contexts of
// the rest and waits a moment for them to return.
func (s *server) shutdown(wait time.Duration) {
	defer s.stop(errStopping)
	if s.drain(wait) {
		return
	}
	s.stop(errStopping)
	if !s.drain(settle) {
		s.http.Close()
	}
}

func (s *server) drain(wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return s.http.Shutdown(ctx) == nil
}
