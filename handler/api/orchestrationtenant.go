package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Owners knows the owners of instances and of all other data of engines. With the zero value, callers of one tenant
// start nothing.
type Owners struct {
	// Registry knows the owners of instances.
	Registry *registry.Registry
	// Engine is engine.Pipeline.Owner.
	Engine func(ctx context.Context, engine string, m engine.Message, instanceTenant string) (tenant string, known bool, err error)
}

// OwnStart limits a start of an engine to the caller's tenant, if the caller is bound to one: for that tenant, for
// one of its own instances, and acting on no data of another owner. The errors are access.ErrForbidden and
// engine.ErrRefused, and those of owners.
func OwnStart(ctx context.Context, p access.Principal, s orchestrator.Start, owners Owners) (orchestrator.Start, error) {
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
	m.TenantID = p.Scope
	if err := owners.allow(ctx, p, s.Orchestrator, m); err != nil {
		return s, err
	}
	input, err := payload.Marshal(m) // exactly the checked fields: no duplicates or names in other case
	s.Input = input
	return s, err
}

// allow returns the reason why a caller of one tenant may not start an engine with a message, nil if it may: the
// instance is the caller's, and so is all other data that the engine acts on.
func (o Owners) allow(ctx context.Context, p access.Principal, engineName string, m engine.Message) error {
	denied := fmt.Errorf("%w: callers of this tenant start engines for its own instances only, and only engines that declare an owner (Definition.Owner): set instanceId to an instance of the tenant, and name nothing of other tenants in the input", access.ErrForbidden)
	if o.Registry == nil || o.Engine == nil || m.InstanceID == "" {
		return denied
	}
	i, err := o.Registry.Get(ctx, m.InstanceID)
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return denied
	case err != nil:
		return err
	case !p.Sees(i.TenantID):
		return denied
	}
	tenant, known, err := o.Engine(ctx, engineName, m, i.TenantID)
	switch {
	case err != nil:
		return err
	case !known || !p.Sees(tenant):
		return denied
	}
	return nil
}

// notOthers checks that an id is free for the caller: another tenant's orchestration is neither replaced nor shown.
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
