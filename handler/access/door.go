package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler/quota"
)

// Door is an entry point of the program. Control and Audit are required.
type Door struct {
	Control Control
	// Audit records the changes through this entry point, under its name: "api", "durable" or "cli".
	Audit *audit.Log
	Name  string
	// Ready waits until the storage of requests is available, or returns the reason why it is not; nil means always
	// available. Requests that the program answers by itself (Public, Self and PlatformRead) do not wait.
	Ready func(ctx context.Context) error
	// Refusals limits the recorded refusals of a caller; nil records all.
	Refusals *quota.Sampler
	// Log takes what could not be recorded; nil means no log.
	Log *slog.Logger
}

// ErrNotReady: the storage of the request is not available yet. It can be repeated.
var ErrNotReady = errors.New("the program is not ready yet")

// Validate returns all errors of the configuration.
func (d Door) Validate() error {
	errs := []error{d.Control.Validate()}
	if d.Audit == nil || d.Name == "" {
		errs = append(errs, errors.New("an audit log and a name are needed"))
	}
	return errors.Join(errs...)
}

// Call is one permitted request of a principal. It is for one goroutine.
type Call struct {
	Principal Principal

	door          Door
	need          Permission
	correlationID string
	path          string
	entry         *audit.Entry
}

// Enter authenticates the caller of a request, and checks its quota and its permission. Public needs no caller. The
// errors are those of Control.Principal, a *quota.ExceededError, a *DeniedError, and ErrNotReady. The refusal of a
// change is recorded.
func (d Door) Enter(ctx context.Context, r *http.Request, need Permission, correlationID string) (*Call, error) {
	c := &Call{door: d, need: need, correlationID: correlationID, path: r.Method + " " + r.URL.Path}
	if need == Public {
		return c, nil // probes, whose answers are cached
	}
	who, err := d.Control.Principal(r)
	if err != nil {
		return nil, err
	}
	if need != Self {
		if err := who.admit(ctx); err != nil {
			return nil, err
		}
	}
	if c.Principal = who; !who.May(need) {
		denied := &DeniedError{Need: need, Overage: who.Overage}
		c.Refused(ctx, denied)
		return nil, denied
	}
	if d.Ready == nil || need == Self || need == PlatformRead {
		return c, nil
	}
	if err := d.Ready(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return c, nil
}

// DeniedError: the principal lacks the permission.
type DeniedError struct {
	Need Permission
	// Overage means that groups might grant it, which the token does not name.
	Overage bool
}

// Error names the permission, and where to find the roles.
func (e *DeniedError) Error() string {
	text := fmt.Sprintf("you need the permission %s, and do not have it: GET /api/me says what you may do", e.Need)
	if e.Overage {
		text += "; your groups are not in your token, because they are too many: ask for an app role"
	}
	return text
}

// Is lets errors.Is find ErrForbidden.
func (e *DeniedError) Is(target error) bool { return target == ErrForbidden }

// HomeTenant is the id of the home tenant, "" for none.
func (c *Call) HomeTenant() string { return c.door.Control.Policy.HomeTenant }

// Change is what a call is about to change.
type Change struct {
	// Action is the action, Target its object.
	Action, Target string
	// Tenant is the tenant of the target, Before the target's state, Reason the caller's reason.
	Tenant, Before, Reason string
}

// Begin records a change. The error is audit.ErrNotRecorded: then the change must not be made.
func (c *Call) Begin(ctx context.Context, change Change) error {
	e := c.entryOf()
	e.Action, e.Target, e.TenantID, e.Before, e.Reason = change.Action, change.Target, change.Tenant, change.Before, change.Reason
	e, err := c.door.Audit.Begin(ctx, e)
	if err == nil {
		c.entry = &e
	}
	return err
}

// Began reports whether a change was recorded.
func (c *Call) Began() bool { return c.entry != nil }

// endTimeout bounds the record of the end of a change, which is made even if the caller has disconnected.
const endTimeout = 5 * time.Second

// End records the outcome of the change that Begin has recorded; without one, it does nothing. err is nil for a
// change that was made, and after is the target's new state; otherwise err is the reason.
func (c *Call) End(ctx context.Context, after string, err error) {
	if c.entry == nil {
		return
	}
	outcome := audit.Done
	if err != nil {
		outcome, after = audit.Failed, err.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := c.door.Audit.End(ctx, *c.entry, outcome, after); err != nil {
		c.warn("the audit log does not show what became of a change", err)
	}
}

// Refused records that a change was refused, unless the door's Refusals skips it. A refused read is not recorded.
func (c *Call) Refused(ctx context.Context, why error) {
	if !c.need.Changes() {
		return
	}
	e := c.entryOf()
	e.Action, e.Target, e.Outcome, e.After = string(c.need), c.path, audit.Refused, why.Error()
	if callers := c.Principal.callers(); c.door.Refusals != nil && len(callers) > 0 {
		of := callers[len(callers)-1]
		skipped, ok := c.door.Refusals.Take(of)
		if !ok {
			return
		}
		if skipped > 0 {
			e.After = fmt.Sprintf("%s (%d more refusals of this %s are not recorded)", e.After, skipped, of.Kind)
		}
	}
	if err := c.door.Audit.Record(ctx, e); err != nil {
		c.warn("the audit log does not show a refusal", err)
	}
}

func (c *Call) entryOf() audit.Entry {
	p := c.Principal
	return audit.Entry{Principal: p.ID(), Name: p.Name, Kind: string(p.Kind), Permission: string(c.need), Door: c.door.Name, CorrelationID: c.correlationID}
}

func (c *Call) warn(text string, err error) {
	cmp.Or(c.door.Log, slog.New(slog.DiscardHandler)).Warn(text, "principal", c.Principal.ID(), "permission", string(c.need),
		"correlationId", c.correlationID, "error", err.Error())
}
