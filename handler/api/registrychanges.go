package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/redact"
)

// The bounds of filters of instances, in bytes.
const (
	maxTenantID = 256
	maxRing     = 64
)

// patchOf reads the fields of an instance from the body.
func (r *request) patchOf() (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	text, err := r.value()
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(text, &fields) != nil || fields == nil {
		return nil, badBody("", "Use one JSON object with the fields that are to change; null takes a field away.")
	}
	for name, v := range fields {
		whole, err := json.Marshal(map[string]json.RawMessage{name: v})
		if err != nil {
			return nil, badBody(name, "The body is not JSON.")
		}
		if string(redact.JSON(whole)) != string(whole) {
			return nil, badBody(name, "This looks like a secret. Documents are not encrypted: keep it in the key vault, and write its name.")
		}
	}
	return text, nil
}

// createInstance adds an instance. Adding the same again is no error.
func (a *api) createInstance(ctx context.Context, r *request) (reply, error) {
	body, err := r.patchOf()
	if err != nil {
		return reply{}, err
	}
	made, patch, err := newInstance(body, r.principal())
	if err != nil {
		return reply{}, err
	}
	if free, err := a.freeFor(ctx, r.principal(), made); err != nil {
		return reply{}, err
	} else if !free {
		return reply{}, hidden(instanceExists())
	}
	if err := r.call.Begin(ctx, access.Change{Action: "add", Target: "registry/" + made.InstanceID, Tenant: made.TenantID}); err != nil {
		return reply{}, err
	}
	created, err := a.registry.Create(ctx, made)
	status := http.StatusCreated
	if errors.Is(err, registry.ErrExists) {
		created, err = a.sameInstance(ctx, r, made.InstanceID, patch)
		status = http.StatusOK
	}
	if err != nil {
		return reply{}, documentFailure(err)
	}
	r.after = versionText(created)
	rep, err := a.instanceReply(ctx, created)
	rep.status = status
	rep.header = map[string]string{"Location": "/api/registry/" + url.PathEscape(created.InstanceID)}
	return rep, err
}

// freeFor reports whether a caller of one tenant may add an instance. It may not if an engine has keys, or succeeded
// work, of another owner under the id. Failures do not count: a report may arrive before its instance is added.
// Create decides about registered instances.
func (a *api) freeFor(ctx context.Context, who access.Principal, made registry.Instance) (bool, error) {
	if who.Scope == "" {
		return true, nil
	}
	if _, err := a.registry.Get(ctx, made.InstanceID); !errors.Is(err, registry.ErrNotFound) {
		return true, err
	}
	page, err := a.history.List(ctx, engine.HistoryFilter{Engines: a.engines, InstanceID: made.InstanceID, Status: engine.StatusSucceeded, Limit: 1})
	if err != nil {
		return false, err
	}
	if len(page.Entries) > 0 && !who.Sees(page.Entries[0].TenantID) {
		return false, nil
	}
	for _, d := range a.descriptions {
		if a.owners.Engine == nil {
			break
		}
		owner, known, err := a.owners.Engine(ctx, d.Name, engine.Message{InstanceID: made.InstanceID, TenantID: made.TenantID}, made.TenantID)
		if err != nil || known && !who.Sees(owner) {
			return false, err
		}
	}
	return true, nil
}

// newInstance returns the instance in a body, and its fields without the id.
func newInstance(body json.RawMessage, who access.Principal) (made registry.Instance, patch json.RawMessage, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return made, nil, badBody("", "Use one JSON object.")
	}
	id := ""
	if json.Unmarshal(fields["instanceId"], &id) != nil || id == "" || strings.TrimSpace(id) != id || strings.ContainsFunc(id, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return made, nil, badBody("instanceId", "Say which instance it is: its id, of characters that can be seen, without blanks around it.")
	}
	made.InstanceID = id
	delete(fields, "instanceId")
	if patch, err = json.Marshal(fields); err != nil {
		return made, nil, badBody("", "The body is not JSON.")
	}
	if err := made.Patch(patch); err != nil {
		return made, nil, err
	}
	if who.Scope != "" && made.TenantID == "" {
		made.TenantID = who.Scope
	}
	if !who.Sees(made.TenantID) {
		return made, nil, forbidden("You add instances of your own tenant only.")
	}
	return made, patch, nil
}

// sameInstance returns the existing instance, if it has the same fields.
func (a *api) sameInstance(ctx context.Context, r *request, id string, patch json.RawMessage) (registry.Instance, error) {
	found, err := a.registry.Get(ctx, id)
	if err != nil {
		return registry.Instance{}, err
	}
	if !r.principal().Sees(found.TenantID) {
		return registry.Instance{}, hidden(instanceExists())
	}
	patched := found.Clone()
	if err := patched.Patch(patch); err != nil {
		return registry.Instance{}, err
	}
	before, err := json.Marshal(found)
	after, errToo := json.Marshal(patched)
	if err := errors.Join(err, errToo); err != nil {
		return registry.Instance{}, err
	}
	if string(before) != string(after) {
		return registry.Instance{}, instanceExists()
	}
	return found, nil
}

// changeInstance changes an instance by a JSON merge patch.
func (a *api) changeInstance(ctx context.Context, r *request) (reply, error) {
	patch, err := r.patchOf()
	if err != nil {
		return reply{}, err
	}
	i, version, err := a.instanceAt(ctx, r)
	if err != nil {
		return reply{}, err
	}
	trial := i.Clone()
	if err := a.patched(ctx, r, &trial, patch); err != nil {
		return reply{}, err
	}
	if err := r.call.Begin(ctx, instanceChange("change", i, "")); err != nil {
		return reply{}, err
	}
	changed, err := a.registry.Change(ctx, i.InstanceID, a.ownDrain(r, i), version, func(i *registry.Instance) error { return a.patched(ctx, r, i, patch) })
	if err != nil {
		return reply{}, documentFailure(err)
	}
	r.after = versionText(changed)
	return a.instanceReply(ctx, changed)
}

// patched changes a document within the caller's permissions.
func (a *api) patched(ctx context.Context, r *request, i *registry.Instance, patch json.RawMessage) error {
	owner := i.TenantID
	if err := i.Patch(patch); err != nil {
		return err
	}
	if r.principal().Scope != "" && i.TenantID != owner {
		return forbidden("Whose an instance is, only the platform can change.")
	}
	own, err := a.ownInstance(ctx)
	if err != nil || own == "" || own != i.InstanceID || i.EngineTablesConfig == nil {
		return err
	}
	return a.placement.Check(*i.EngineTablesConfig)
}

// removed describes a removal.
type removed struct {
	InstanceID string   `json:"instanceId"`
	Remains    []string `json:"remains"`
}

// removeInstance removes an instance from the registry, and nothing else.
func (a *api) removeInstance(ctx context.Context, r *request) (reply, error) {
	if err := r.decode(&struct{}{}); err != nil {
		return reply{}, err
	}
	i, version, err := a.instanceAt(ctx, r)
	if err != nil {
		return reply{}, err
	}
	own, err := a.ownInstance(ctx)
	if err != nil {
		return reply{}, err
	}
	if own == i.InstanceID {
		return reply{}, &failure{status: http.StatusConflict, problem: problem{Code: codeInvalidState,
			Message: "This is the document of the app itself, which would add it again when it starts: change it instead."}}
	}
	if err := r.call.Begin(ctx, instanceChange("remove", i, "")); err != nil {
		return reply{}, err
	}
	if err := a.registry.Remove(ctx, i.InstanceID, a.ownDrain(r, i), version); err != nil {
		return reply{}, err
	}
	r.after = "removed"
	return reply{data: removed{InstanceID: i.InstanceID, Remains: []string{
		"its history and dead letters, until retention deletes them",
		"orchestrations that are under way for it: list and cancel them",
		"messages for it in queues: engines will refuse them, and they become dead letters",
		"its secrets and certificates in the key vault, and whatever was provisioned for it",
	}}}, nil
}

// instanceAt returns the instance of the path, and the version of If-Match, 0 for any.
func (a *api) instanceAt(ctx context.Context, r *request) (registry.Instance, int64, error) {
	i, err := a.instance(ctx, r)
	if err != nil {
		return registry.Instance{}, 0, err
	}
	switch ifMatch(r.http.Header) {
	case "":
		return i, 0, nil
	case tagOf(i.Version):
		return i, i.Version, nil
	default:
		return registry.Instance{}, 0, instanceChanged(tagOf(i.Version))
	}
}

// ownDrain returns the job of the caller's own drain of an instance, "" for none.
func (a *api) ownDrain(r *request, i registry.Instance) string {
	if job := drainJob + r.principal().ID(); i.Lock.JobID == job && i.Lock.Held(a.now()) {
		return job
	}
	return ""
}

// instanceChange returns the audit record of an instance's change.
func instanceChange(action string, i registry.Instance, reason string) access.Change {
	before := versionText(i)
	if i.Lock.JobID != "" {
		before += ", lock of " + i.Lock.JobID
	}
	return access.Change{Action: action, Target: "registry/" + i.InstanceID, Tenant: i.TenantID, Before: before, Reason: reason}
}

func versionText(i registry.Instance) string { return "version " + strconv.FormatInt(i.Version, 10) }
