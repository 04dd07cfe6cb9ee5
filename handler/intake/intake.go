// Package intake is where others send messages over HTTP that become messages of engines' queues.
//
//	POST /api/marketplace/webhook     webhooks of the commercial marketplace; a token of Microsoft Entra in Authorization
//	POST /api/managed-app/resource    notifications of managed applications; the signature in the query parameter sig.
//	                                  The address to register is .../api/managed-app: the sender appends /resource
//	POST /api/alerts                  alerts of Azure Monitor and of flows; a key (x-functions-key, or the query parameter
//	                                  code) or a token of Microsoft Entra
//
// What it promises:
//   - A message is taken (200, or 202 for alerts) only when it is in its queue. Whatever went wrong otherwise is answered
//     so that its sender repeats what may yet succeed, and with 4xx what may not.
//   - A sender gets its answer well within the ten seconds that it waits: Config.Timeout bounds a request.
//   - Who sends is known before the body is read, the body is bounded, and one that its engine would not understand is
//     refused with 400.
//   - What the same sender repeats has the same correlation id. What does not fit a queue message travels by way of a blob
//     (engine.Claims).
//
// Bodies, tokens and keys are never logged. The package owns no storage keys.
package intake

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
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
	// DefaultTimeout is how long a request may take when Config does not say.
	DefaultTimeout = 8 * time.Second
	// maxBody bounds a body in bytes: an alert may have 256 KiB.
	maxBody = 512 << 10
	// minKey is the least length of a key, in bytes.
	minKey = 16
)

// Adapt makes a message of the body of a foreign sender; see engine.Definition.Adapt.
type Adapt func(body []byte) (m engine.Message, ok bool, err error)

// Target is the engine that gets what an intake takes.
type Target struct {
	// Queue is the engine's queue, Adapt its adapter. Both are required.
	Queue string
	Adapt Adapt
}

// Webhook is the intake of the commercial marketplace.
type Webhook struct {
	Target
	// Tokens verifies who sends. Required.
	Tokens *Entra
	// Declines, if it is set, says which webhooks are answered with 400, which the marketplace takes as a refusal of the
	// change. They get into the queue all the same, so that the engine settles and records them.
	Declines func(body []byte) bool
}

// Notifications is the intake of managed applications.
type Notifications struct {
	Target
	// Signature is what the query parameter sig has to be, 16 bytes or more. Required.
	Signature string
}

// Alerts is the intake of alerts.
type Alerts struct {
	Target
	// Key is a key that opens it, 16 bytes or more; Tokens verifies tokens. One of them is required; with both, either
	// opens it.
	Key    string
	Tokens *Entra
}

// Config says which intakes there are and what they work with. Queues and Claims are required; an intake that is nil does
// not exist.
type Config struct {
	Queues        queues.Store
	Claims        *engine.Claims
	Webhook       *Webhook
	Notifications *Notifications
	Alerts        *Alerts
	// Timeout bounds one request; DefaultTimeout when 0, and less than 10 s.
	Timeout time.Duration
	// Now is the clock of the answers; time.Now when nil.
	Now func() time.Time
	// Log takes one record for every request; nil means no log.
	Log *slog.Logger
}

// Validate reports everything that is wrong with the configuration, joined into one error.
func (c Config) Validate() error {
	var errs []error
	if c.Queues == nil || c.Claims == nil {
		errs = append(errs, errors.New("queues and claims are required"))
	}
	if c.Timeout < 0 || c.Timeout >= 10*time.Second {
		errs = append(errs, fmt.Errorf("timeout %v: senders wait for 10 s", c.Timeout))
	}
	if w := c.Webhook; w != nil {
		errs = append(errs, w.check("webhook"))
		if w.Tokens == nil {
			errs = append(errs, errors.New("webhook: tokens have to be verified"))
		}
	}
	if n := c.Notifications; n != nil {
		errs = append(errs, n.check("notifications"), checkKey("notifications: signature", n.Signature))
	}
	if a := c.Alerts; a != nil {
		errs = append(errs, a.check("alerts"))
		if a.Key != "" || a.Tokens == nil {
			errs = append(errs, checkKey("alerts: key", a.Key))
		}
	}
	return errors.Join(errs...)
}

func (t Target) check(name string) error {
	if t.Queue == "" || t.Adapt == nil {
		return fmt.Errorf("%s: queue and adapter are required", name)
	}
	return nil
}

func checkKey(name, key string) error {
	if len(key) < minKey {
		return fmt.Errorf("%s: it has to have %d bytes or more", name, minKey)
	}
	return nil
}

// intake is what the routes share.
type intake struct {
	queues  queues.Store
	claims  *engine.Claims
	timeout time.Duration
	now     func() time.Time
	log     *slog.Logger
}

// route is one intake: who may send, who gets it, and how it is taken.
type route struct {
	path      string
	target    Target
	authorize func(ctx context.Context, r *http.Request) error
	taken     int                    // the status
	declines  func(body []byte) bool // nil declines nothing
}

// The paths of the intakes.
const (
	WebhookPath       = "/api/marketplace/webhook"
	NotificationsPath = "/api/managed-app/resource"
	AlertsPath        = "/api/alerts"
)

// Paths lists the paths of all intakes, whether or not a Config has them. Each takes POST alone, and wants a function with
// the authorization level anonymous: who sends is verified here.
func Paths() []string { return []string{WebhookPath, NotificationsPath, AlertsPath} }

func (c Config) routes() []route {
	var routes []route
	if w := c.Webhook; w != nil {
		routes = append(routes, route{WebhookPath, w.Target, w.Tokens.authorize, http.StatusOK, w.Declines})
	}
	if n := c.Notifications; n != nil {
		routes = append(routes, route{NotificationsPath, n.Target, n.authorize, http.StatusOK, nil})
	}
	if a := c.Alerts; a != nil {
		routes = append(routes, route{AlertsPath, a.Target, a.authorize, http.StatusAccepted, nil})
	}
	return routes
}

// Register mounts the intakes on e, in any letter case of their paths, as the host matches them. It returns the error of
// c.Validate and then registers nothing.
func Register(e *echo.Echo, c Config) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("register the intakes: %w", err)
	}
	in := &intake{queues: c.Queues, claims: c.Claims, timeout: c.Timeout, now: c.Now, log: c.Log}
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

// authorize compares the signature that the publisher has put into the registered address.
func (n *Notifications) authorize(_ context.Context, r *http.Request) error {
	if !same(r.URL.Query().Get("sig"), n.Signature) {
		return errUnauthorized
	}
	return nil
}

// authorize takes a key or a token; a key that is wrong is not made good by a token.
func (a *Alerts) authorize(ctx context.Context, r *http.Request) error {
	key := r.Header.Get("x-functions-key")
	if key == "" {
		key = r.URL.Query().Get("code")
	}
	switch {
	case key != "" && a.Key != "" && same(key, a.Key):
		return nil
	case key != "" || a.Tokens == nil:
		return errUnauthorized
	default:
		return a.Tokens.authorize(ctx, r)
	}
}

// same compares in a time that tells nothing, the length included.
func same(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
