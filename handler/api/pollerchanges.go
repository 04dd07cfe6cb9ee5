package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/admin"
)

const (
	// maxPlace bounds the value of a cursor, in bytes: a state document could hold far longer ones, and no database
	// has them.
	maxPlace = 1 << 10
	maxName  = 63
)

// pollerOrder is the body of a change. The permitted members depend on the change.
type pollerOrder struct {
	// Force ignores a live lease, and accepts a checkpoint of another poller or definition. DryRun changes nothing.
	Force  bool `json:"force"`
	DryRun bool `json:"dryRun"`
}

// order reads the body of a change, and returns its errors.
func (r *request) order(kind admin.Kind) (admin.Change, error) {
	c := admin.Change{Kind: kind}
	var body pollerOrder
	var err error
	switch kind {
	case admin.ResetToCursor:
		body, err = r.cursorOrder(&c)
	case admin.ResetToCheckpoint:
		body, err = r.checkpointOrder(&c)
	case admin.CloneCheckpoint:
		body, err = r.cloneOrder(&c)
	default:
		err = r.decode(&body)
	}
	c.Force, c.DryRun = body.Force, body.DryRun
	return c, err
}

func (r *request) cursorOrder(c *admin.Change) (pollerOrder, error) {
	var body struct {
		pollerOrder
		Value string          `json:"value"`
		Kind  string          `json:"kind"`
		Keys  json.RawMessage `json:"keys"`
	}
	if err := r.decode(&body); err != nil {
		return body.pollerOrder, err
	}
	q := &query{values: url.Values{"value": {body.Value}, "kind": {body.Kind}}}
	if q.text("value", maxPlace) == "" {
		q.problem("value", "Say which value of the cursor column is meant: there is no default for it.")
	}
	q.oneOf("kind", poller.Kinds()...)
	var keys map[string]json.RawMessage
	if len(body.Keys) > 0 && (json.Unmarshal(body.Keys, &keys) != nil || len(keys) == 0) {
		q.problem("keys", `Use a JSON object of the key columns, such as {"id":5}.`)
	}
	c.Cursor = poller.Cursor{Kind: body.Kind, Value: body.Value, Tiebreaker: body.Keys}
	return body.pollerOrder, q.err()
}

func (r *request) checkpointOrder(c *admin.Change) (pollerOrder, error) {
	var body struct {
		pollerOrder
		Checkpoint json.RawMessage `json:"checkpoint"`
	}
	err := r.decode(&body)
	if err == nil && (len(body.Checkpoint) == 0 || body.Checkpoint[0] != '{') {
		err = badBody("checkpoint", "Use a JSON object: a state document, or a checkpoint alone.")
	}
	c.File = body.Checkpoint
	return body.pollerOrder, err
}

func (r *request) cloneOrder(c *admin.Change) (pollerOrder, error) {
	var body struct {
		pollerOrder
		To string `json:"to"`
	}
	err := r.decode(&body)
	if err == nil && poller.CheckName(body.To) != nil {
		err = badBody("to", fmt.Sprintf("Name the new poller: use up to %d of a-z, 0-9 and single hyphens between them.", maxName))
	}
	c.To = body.To
	return body.pollerOrder, err
}

// pollerState is a state in a change, before and after.
type pollerState struct {
	pollerPlace
	Token       int64  `json:"token"`
	Owner       string `json:"owner,omitempty"`
	Retired     bool   `json:"retired"`
	Fingerprint string `json:"fingerprint,omitempty"`
}

// pollerEffect is the effect of a change, made or planned.
type pollerEffect struct {
	// Poller is the poller of the state: for a clone, the new one.
	Poller string       `json:"poller"`
	Before *pollerState `json:"before,omitempty"`
	After  pollerState  `json:"after"`
	// Applied is false for a dry run. Fenced means that a process has lost the lease, and Repeated that the request
	// was carried out before.
	Applied  bool `json:"applied"`
	Fenced   bool `json:"fenced"`
	Repeated bool `json:"repeated"`
}

// changePoller returns the endpoint of a change. The header Idempotency-Key makes repeated requests one change.
func (a *api) changePoller(kind admin.Kind) endpoint {
	return func(ctx context.Context, r *request) (reply, error) {
		c, err := r.order(kind)
		if err != nil {
			return reply{}, err
		}
		key, err := requestKey(r)
		if err != nil {
			return reply{}, err
		}
		p, err := a.poller(ctx, r)
		if err != nil {
			return reply{}, err
		}
		c.Request = poller.Request{ID: key, Digest: fingerprintOf(p.Name, c.Kind, c.Force, c.Cursor, c.To, c.File)}
		if r.dryRun = c.DryRun; !c.DryRun {
			if err := r.call.Begin(ctx, access.Change{Action: actionOf(c), Target: "pollers/" + p.Name, Before: stateText(p.View.Document)}); err != nil {
				return reply{}, err
			}
		}
		made, err := a.pollers.admin.Change(ctx, p.Name, c)
		if err != nil {
			return reply{}, err
		}
		r.after = stateText(made.After)
		effect := pollerEffect{Poller: made.Poller, After: stateIn(made.After), Applied: made.Applied, Fenced: made.Fenced, Repeated: made.Repeated}
		if made.Before != nil {
			before := stateIn(made.Before)
			effect.Before = &before
		}
		return reply{data: effect, status: http.StatusOK}, nil
	}
}

// actionOf returns the name of a change for the audit log, as in the command line.
func actionOf(c admin.Change) string {
	action := string(c.Kind)
	switch {
	case c.To != "":
		action += " to " + c.To
	case c.Cursor.Value != "":
		action += " to " + c.Cursor.String()
	}
	if c.Force {
		action += " by force"
	}
	return action
}

func stateIn(d *poller.Document) pollerState {
	return pollerState{pollerPlaceOf(d), d.Lease.Token, d.Lease.Owner, d.Retired, d.Fingerprint}
}

// stateText returns a state for the audit log.
func stateText(d *poller.Document) string {
	if d == nil {
		return "none"
	}
	return fmt.Sprintf("at %s, token %d, owner %q, definition %.24s", d.Cursor(), d.Lease.Token, d.Lease.Owner, d.Fingerprint)
}
