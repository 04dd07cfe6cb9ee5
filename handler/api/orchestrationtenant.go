package api

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator"
)

// forTenant makes a start one of the caller's tenant, if the caller is bound to one: for that tenant, and for one of its own
// instances, as the registry knows them.
func (a *api) forTenant(ctx context.Context, r *request, s orchestrator.Start) (orchestrator.Start, error) {
	scope := r.principal().Scope
	if scope == "" {
		return s, nil
	}
	s.TenantID = scope
	if a.admit == nil {
		return s, nil
	}
	var m engine.Message
	if err := json.Unmarshal(s.Input, &m); err != nil || m.Blob != "" {
		return s, badBody("input", "Use the engine's message, an object with operation, instanceId, tenantId and input.")
	}
	if m.TenantID != "" && !r.principal().Sees(m.TenantID) {
		return s, hidden(forbidden("You start engines for your own tenant only."))
	}
	tenant, known := "", false
	if a.instanceTenant != nil && m.InstanceID != "" {
		var err error
		if tenant, known, err = a.instanceTenant(ctx, m.InstanceID); err != nil {
			return s, err
		}
	}
	if !known || !r.principal().Sees(tenant) {
		return s, hidden(forbidden("You start engines for managed instances of your own tenant only: name one of them in instanceId."))
	}
	m.TenantID = scope
	input, err := payload.Marshal(m) // what has been looked at, and no more: names in other letters and twice
	s.Input = input
	return s, err
}

// notOthers says whether an id is free for the caller: another tenant's orchestration is neither replaced nor shown.
func (a *api) notOthers(ctx context.Context, r *request, id string) error {
	if r.principal().Scope == "" {
		return nil
	}
	s, err := a.runtime.Status(ctx, id)
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		return nil
	case err != nil:
		return err
	case !r.principal().Sees(s.TenantID):
		return hidden(orchestrationFailure(orchestrator.ErrExists))
	default:
		return nil
	}
}
