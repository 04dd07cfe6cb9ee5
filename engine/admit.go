package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/orchestrator"
)

var (
	// ErrNoEngine: no engine has this name.
	ErrNoEngine = errors.New("no such engine")
	// ErrRefused: the engine does not accept the start; the message lists the accepted values.
	ErrRefused = errors.New("refused")
)

// Admit prepares a start that did not come through a queue, so that it is handled like a message: it writes history,
// failures are retried through the engine's queue, and a final failure becomes a dead letter. s.Orchestrator is the
// engine, and s.Input the message, null for none. s.CorrelationID takes precedence over the message's; without
// either, Admit generates one, the same for the same RequestID. s.TenantID is the tenant of a message that names
// none; a message for another tenant is refused. A start for a tenant gets a correlation id in the tenant's namespace
// (TenantCorrelationID), and no start may have that of a schedule. The engine's rule determines the id: s.ID is empty
// or equals it. Where the id ends with the correlation id, s.ID may supply it. The errors are ErrNoEngine,
// ErrRefused, a *ConflictError, and those of storage.
func (p *Pipeline) Admit(ctx context.Context, s orchestrator.Start) (orchestrator.Start, error) {
	def, ok := p.byName[s.Orchestrator]
	if !ok {
		return s, fmt.Errorf("start of %.128q: %w", s.Orchestrator, ErrNoEngine)
	}
	m, err := def.startMessage(s)
	if err != nil {
		return s, fmt.Errorf("start of engine %s: %w: %w", def.Name, ErrRefused, err)
	}
	a := &attempt{Pipeline: p, def: def, message: m}
	id := a.orchestrationID()
	if s.ID != "" && s.ID != id {
		return s, fmt.Errorf("start of engine %s: %w: the id %.400q is not %s: give that one, or none", def.Name, ErrRefused, s.ID, def.idPattern(s, id))
	}
	if err := p.Conflict(ctx, m); err != nil {
		return s, err
	}
	if p.config.Claims == nil && len(m.Input) > MaxMessage/2 {
		return s, fmt.Errorf("start of engine %s: %w: this program keeps no large inputs: set Config.Claims", def.Name, ErrRefused)
	}
	s.Once = def.Singleton != "" && s.Reuse == orchestrator.ReuseNever
	if err := a.admitSingleton(ctx, s.Once); err != nil {
		return s, fmt.Errorf("start of engine %s: %w", def.Name, err)
	}
	body, err := p.config.Claims.Pack(ctx, m)
	if err != nil {
		return s, fmt.Errorf("start of engine %s: %w", def.Name, err)
	}
	h := header{MessageID: uuid.NewString(), InsertedAt: p.config.Now().UTC(), Attempts: 1}
	if s.Carry, err = h.prepend(body); err != nil {
		return s, err
	}
	if s.Input, err = m.encode(); err != nil {
		return s, fmt.Errorf("start of engine %s: %w: %w", def.Name, ErrRefused, err)
	}
	s.Same, s.Trace = def.same(m), cmp.Or(m.TraceParent, s.Trace)
	s.ID, s.CorrelationID, s.TenantID, s.Timeout, s.WillRetry = id, m.CorrelationID, cleanText(m.TenantID), def.Timeout, true
	if def.Singleton != "" {
		s.Reuse = orchestrator.ReuseEnded
	}
	return s, nil
}

// Owner returns the tenant that owns everything a run of the message acts on, given the tenant of its instance. known is false for an
// engine without Definition.Owner.
func (p *Pipeline) Owner(ctx context.Context, engine string, m Message, instanceTenant string) (tenantID string, known bool, err error) {
	def, ok := p.byName[engine]
	if !ok {
		return "", false, fmt.Errorf("owner of what %.128q acts on: %w", engine, ErrNoEngine)
	}
	if def.Owner == nil {
		return "", false, nil
	}
	if tenantID, err = def.Owner(ctx, m, instanceTenant); err != nil {
		return "", false, fmt.Errorf("owner of what engine %s acts on for instance %.128s: %w", engine, m.InstanceID, err)
	}
	return tenantID, true, nil
}

// admitSingleton returns orchestrator.ErrExists if the correlation id of a singleton's message belongs to other work.
// With once, it also does so if the work has succeeded and its orchestration no longer shows that. The orchestration
// decides for other engines.
func (a *attempt) admitSingleton(ctx context.Context, once bool) error {
	if a.def.Singleton == "" {
		return nil
	}
	if err := a.readHistory(ctx); err != nil {
		return err
	}
	conflict, err := a.otherWork(ctx)
	if err == nil && conflict != nil {
		err = fmt.Errorf("%w: %w: %w", orchestrator.ErrExists, orchestrator.ErrOtherWork, conflict)
	}
	if err != nil || !once || !a.history.succeeded() {
		return err
	}
	if _, err = a.ownRun(ctx); errors.Is(err, orchestrator.ErrNotFound) {
		return fmt.Errorf("%w: the work has succeeded: start it with another correlation id to repeat it", orchestrator.ErrExists)
	}
	return err
}

// idPattern describes the id of a run, for error texts.
func (d Definition) idPattern(s orchestrator.Start, id string) string {
	if d.Singleton == "" && s.TenantID == "" {
		return d.Name + "-{correlationId}"
	}
	return id
}

// newCorrelationID makes a correlation id for a start.
func (d Definition) newCorrelationID(s orchestrator.Start) string {
	if s.RequestID == "" {
		return uuid.NewString()
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("start\n"+d.Name+"\n"+s.TenantID+"\n"+s.RequestID)).String()
}

// startMessage returns the message of a start.
func (d Definition) startMessage(s orchestrator.Start) (Message, error) {
	input := bytes.TrimSpace(s.Input)
	if len(input) == 0 || bytes.Equal(input, []byte("null")) {
		input = []byte("{}")
	}
	var m Message
	if err := payload.Check(input); err != nil {
		return m, err
	}
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("the input is not the engine's message, an object with operation, instanceId, tenantId and input: %w", payload.Explain(err))
	}
	if _, err := envelopeOf(input); err != nil {
		return m, err
	}
	if s.CorrelationID != "" {
		m.CorrelationID = s.CorrelationID
	}
	if rest, ok := strings.CutPrefix(s.ID, d.Name+"-"); ok && d.Singleton == "" && m.CorrelationID == "" {
		m.CorrelationID = rest
	}
	if m.CorrelationID == "" {
		m.CorrelationID = d.newCorrelationID(s)
	}
	if m.InstanceID == "" {
		m.InstanceID = PublisherInstance
	}
	m.TenantID = cmp.Or(m.TenantID, s.TenantID)
	if s.TenantID != "" {
		m.CorrelationID = TenantCorrelationID(s.TenantID, m.CorrelationID)
	}
	switch {
	case !tenant.Sees(s.TenantID, m.TenantID):
		return m, errors.New("the start is for one tenant, and the message for another")
	case m.Blob != "":
		return m, errors.New("the input of the message has to be in it, not in a blob")
	case m.Engine != "" && m.Engine != d.Name:
		return m, fmt.Errorf("the message is for the engine %.128q", m.Engine)
	case d.Singleton == PerTenant && m.TenantID == "":
		return m, errors.New("it has one run at a time for a tenant, and the message names none")
	}
	m.Engine = d.Name
	return m, errors.Join(checkOutsideID(m.CorrelationID),
		checkLength("operation", m.Operation, MaxInstanceIDLength),
		checkLength("instance id", m.InstanceID, MaxInstanceIDLength),
		checkTenant(m.TenantID))
}
