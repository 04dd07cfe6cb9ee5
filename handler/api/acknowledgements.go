package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/handler/access"
)

// maxCredential bounds the name of a credential, in bytes.
const maxCredential = 512

// acknowledged is an acknowledgement in an answer.
type acknowledged struct {
	Engine   string    `json:"engine"`
	Target   string    `json:"target"`
	Version  string    `json:"version"`
	Consumer string    `json:"consumer"`
	AtUtc    time.Time `json:"atUtc"`
	By       string    `json:"by"`
}

// credentialConsumers are the consumers of a credential, their acknowledgements, and the waiting version.
type credentialConsumers struct {
	Engine           string         `json:"engine"`
	Target           string         `json:"target"`
	TenantID         string         `json:"tenantId,omitempty"`
	Consumers        []string       `json:"consumers"`
	Acknowledgements []acknowledged `json:"acknowledgements"`
	// Waiting is set while a version has not arrived at every consumer, by the latest check.
	Waiting *waitingVersion `json:"waiting,omitempty"`
}

type waitingVersion struct {
	Version   string    `json:"version"`
	EventID   string    `json:"eventId"`
	Missing   []string  `json:"missing"`
	SeenAtUtc time.Time `json:"seenAtUtc"`
}

// credential finds the consumers of an engine's credential that the caller may see.
func (a *api) credential(r *request, q *query) (*consumers.Consumers, string, consumers.Target, error) {
	engine, target := q.oneOf("engine", slices.Sorted(maps.Keys(a.consumers))...), q.text("target", maxCredential)
	for name, value := range map[string]string{"engine": q.values.Get("engine"), "target": q.values.Get("target")} {
		if value == "" {
			q.problem(name, "Say whose consumers are meant: there is no default for it.")
		}
	}
	if err := q.err(); err != nil {
		return nil, "", consumers.Target{}, err
	}
	c := a.consumers[engine]
	t, ok := c.Target(target)
	none := notFound("No consumers are registered for this target. Register them in ROUNDHOUSE_ROTATIONS.")
	switch {
	case !ok:
		return nil, "", t, none
	case r.principal().Scope != "" && !r.principal().Sees(t.TenantID):
		return nil, "", t, hidden(none)
	}
	return c, target, t, nil
}

// acknowledge records that a version has arrived at a consumer. Repeating it changes nothing.
func (a *api) acknowledge(ctx context.Context, r *request) (reply, error) {
	var body struct {
		Engine   string `json:"engine"`
		Target   string `json:"target"`
		Version  string `json:"version"`
		Consumer string `json:"consumer"`
	}
	if err := r.decode(&body); err != nil {
		return reply{}, err
	}
	q := &query{values: url.Values{"engine": {body.Engine}, "target": {body.Target}, "version": {body.Version}, "consumer": {body.Consumer}}}
	for name, limit := range map[string]int{"version": consumers.MaxVersion, "consumer": consumers.MaxName} {
		if q.text(name, limit) == "" {
			q.problem(name, "Say what has arrived at whom: there is no default for it.")
		}
	}
	c, target, t, err := a.credential(r, q)
	if err != nil {
		return reply{}, err
	}
	change := access.Change{Action: "acknowledge", Target: "acknowledgements/" + body.Engine + "/" + target + "/" + body.Consumer, Tenant: t.TenantID, Before: body.Version}
	if err := r.call.Begin(ctx, change); err != nil {
		return reply{}, err
	}
	said, err := c.Acknowledge(ctx, consumers.Acknowledgement{Target: target, Version: body.Version, Consumer: body.Consumer, By: r.by()})
	if err != nil {
		return reply{}, err
	}
	r.after = body.Version
	return reply{data: acknowledgedOf(body.Engine, said)}, nil
}

// listAcknowledgements lists the acknowledgements of a credential.
func (a *api) listAcknowledgements(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "engine", "target")
	c, target, t, err := a.credential(r, q)
	if err != nil {
		return reply{}, err
	}
	out := credentialConsumers{Engine: q.values.Get("engine"), Target: target, TenantID: t.TenantID, Consumers: t.Names, Acknowledgements: []acknowledged{}}
	all, err := c.Acknowledged(ctx, target)
	if err != nil {
		return reply{}, err
	}
	for _, said := range all {
		out.Acknowledgements = append(out.Acknowledgements, acknowledgedOf(out.Engine, said))
	}
	note, waits, err := c.Waits(ctx, target)
	if err != nil {
		return reply{}, err
	}
	if waits {
		out.Waiting = &waitingVersion{note.Version, note.EventID, notNil(note.Missing), note.SeenAtUtc}
	}
	return reply{data: out}, nil
}

func acknowledgedOf(engine string, a consumers.Acknowledgement) acknowledged {
	return acknowledged{engine, a.Target, a.Version, a.Consumer, a.AtUtc, a.By}
}

// acknowledgementFailure returns the answer to errors about acknowledgements, nil for others.
func acknowledgementFailure(err error) *failure {
	for cause, target := range map[error]string{consumers.ErrInvalid: "", consumers.ErrNotRegistered: "consumer", consumers.ErrUnknownVersion: "version"} {
		if errors.Is(err, cause) {
			return &failure{status: http.StatusUnprocessableEntity, problem: problem{Code: codeNotAcknowledgeable, Message: err.Error(), Target: target}}
		}
	}
	return nil
}
