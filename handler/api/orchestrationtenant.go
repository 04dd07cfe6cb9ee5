package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator"
)

// InstanceTenant is the tenant that a managed instance belongs to, and whether it is known.
type InstanceTenant func(ctx context.Context, instanceID string) (tenant string, known bool, err error)

// OwnStart makes a start of an engine one of the caller's tenant, if the caller is bound to one: for that tenant, and for one
// of its own instances. The errors are access.ErrForbidden and engine.ErrRefused, and those of instances.
func OwnStart(ctx context.Context, p access.Principal, s orchestrator.Start, instances InstanceTenant) (orchestrator.Start, error) {
	if p.Scope == "" {
		return s, nil
	}
	s.TenantID = p.Scope
	var m engine.Message
	if err := json.Unmarshal(s.Input, &m); err != nil || m.Blob != "" {
		return s, fmt.Errorf("%w: the input is not the engine's message, an object with operation, instanceId, tenantId and input", engine.ErrRefused)
	}
	if m.TenantID != "" && !p.Sees(m.TenantID) {
		return s, fmt.Errorf("%w: you start engines for your own tenant only", access.ErrForbidden)
	}
	tenant, known := "", false
	if instances != nil && m.InstanceID != "" {
		var err error
		if tenant, known, err = instances(ctx, m.InstanceID); err != nil {
			return s, err
		}
	}
	if !known || !p.Sees(tenant) {
		return s, fmt.Errorf("%w: you start engines for managed instances of your own tenant only: name one of them in instanceId", access.ErrForbidden)
	}
	m.TenantID = p.Scope
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
