package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/internal/tenant"
)

// drainJob is the prefix of the job ids of drains; the rest is the caller.
const drainJob = "drain/"

// instanceItem is an instance of the registry in a list.
type instanceItem struct {
	InstanceID      string       `json:"instanceId"`
	TenantID        string       `json:"tenantId,omitempty"`
	Ring            string       `json:"ring,omitempty"`
	Version         string       `json:"version,omitempty"`
	RegistryVersion int64        `json:"registryVersion,omitempty"`
	Lock            instanceLock `json:"lock"`
	// Own means that it is the app's own document.
	Own bool `json:"own,omitempty"`
	// Damaged is the reason why the document is unreadable.
	Damaged string `json:"damaged,omitempty"`
}

// instanceLock is the state of an instance's lock.
type instanceLock struct {
	// Held means that the lock is valid: it has a holder, and it has not expired.
	Held     bool      `json:"held"`
	JobID    string    `json:"jobId,omitempty"`
	UntilUtc time.Time `json:"untilUtc,omitzero"`
	// DrainedBy is the caller of the instance's drain.
	DrainedBy string `json:"drainedBy,omitempty"`
}

// instanceDetail is one instance.
type instanceDetail struct {
	instanceItem
	Document json.RawMessage `json:"document"`
	// Tables are the app's tables, only of its own document: as at the start of the app.
	Tables *registry.TableNames `json:"tablesInUse,omitempty"`
}

// listInstances lists the instances of the registry, ordered by their ids. Callers of a tenant see those of the
// tenant.
func (a *api) listInstances(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "tenantId", "ring", "locked", "limit", "continuationToken")
	of, ring := q.text("tenantId", maxTenantID), q.text("ring", maxRing)
	locked := q.oneOf("locked", "true", "false")
	limit := cmp.Or(q.limit(), engine.DefaultLimit)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	scope := r.principal().Scope
	fingerprint := fingerprintOf("registry", of, ring, locked, scope)
	after, err := openToken(q.values.Get("continuationToken"), fingerprint)
	if err != nil {
		return reply{}, err
	}
	own, err := a.ownInstance(ctx)
	if err != nil {
		return reply{}, err
	}
	now := a.now()
	keep := func(f registry.Found) bool {
		if f.Err != nil {
			return scope == "" && of == "" && ring == "" && locked == ""
		}
		item := a.instanceItemOf(f.Instance, own, now)
		return r.principal().Sees(f.TenantID) && (of == "" || tenant.Sees(of, f.TenantID)) &&
			(ring == "" || item.Ring == ring) && (locked == "" || strconv.FormatBool(item.Lock.Held) == locked)
	}
	page, next, err := a.registry.Search(ctx, keep, limit, after)
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(page, sealToken(next, fingerprint), func(f registry.Found) instanceItem {
		item := a.instanceItemOf(f.Instance, own, now)
		if f.Err != nil {
			item.Damaged = redact.Text(f.Err.Error())
		}
		return item
	})}, nil
}

func (a *api) getInstance(ctx context.Context, r *request) (reply, error) {
	i, err := a.instance(ctx, r)
	if err != nil {
		return reply{}, err
	}
	return a.instanceReply(ctx, i)
}

// instance reads the instance of the path, for a caller with permission.
func (a *api) instance(ctx context.Context, r *request) (registry.Instance, error) {
	id, ok := r.param("instance")
	if !ok {
		return registry.Instance{}, registry.ErrNotFound
	}
	i, err := a.registry.Get(ctx, id)
	switch {
	case errors.Is(err, registry.ErrInvalid): // an invalid id has no instance
		return registry.Instance{}, registry.ErrNotFound
	case err != nil:
		return registry.Instance{}, err
	case !r.principal().Sees(i.TenantID):
		return registry.Instance{}, hidden(noInstance())
	}
	return i, nil
}

// ownInstance returns the id of the app's own instance, "" for none.
func (a *api) ownInstance(ctx context.Context) (string, error) {
	if a.placement == nil {
		return "", nil
	}
	return a.placement.Own(ctx)
}

// instanceReply answers with an instance.
func (a *api) instanceReply(ctx context.Context, i registry.Instance) (reply, error) {
	own, err := a.ownInstance(ctx)
	if err != nil {
		return reply{}, err
	}
	document, err := json.Marshal(i)
	if err != nil {
		return reply{}, err
	}
	d := instanceDetail{instanceItem: a.instanceItemOf(i, own, a.now()), Document: redact.JSON(document)}
	if d.Own {
		names, err := a.placement.Names(ctx)
		if err != nil {
			return reply{}, err
		}
		d.Tables = &names
	}
	return reply{data: d, etag: tagOf(i.Version)}, nil
}

func (a *api) instanceItemOf(i registry.Instance, own string, now time.Time) instanceItem {
	item := instanceItem{InstanceID: i.InstanceID, TenantID: i.TenantID, RegistryVersion: i.Version, Lock: lockOf(i, now), Own: own != "" && i.InstanceID == own}
	item.Ring, _ = i.Ring() // a field of another type is shown with the document
	_, _ = i.Field("version", &item.Version)
	return item
}

func lockOf(i registry.Instance, now time.Time) instanceLock {
	l := instanceLock{Held: i.Lock.Held(now), JobID: i.Lock.JobID, UntilUtc: i.Lock.Until}
	if by, ok := strings.CutPrefix(i.Lock.JobID, drainJob); ok && l.Held {
		l.DrainedBy = by
	}
	return l
}
