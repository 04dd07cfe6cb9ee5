package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/traceparent"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// launch is the body of a start.
type launch struct {
	Orchestrator string `json:"orchestrator"`
	// Version is the orchestrator's version, by default the latest.
	Version           string                  `json:"version"`
	ID                string                  `json:"id"`
	Input             json.RawMessage         `json:"input"`
	CorrelationID     string                  `json:"correlationId"`
	BusinessReference *orchestrator.Reference `json:"businessReference"`
	// Reuse is the handling of an existing orchestration with the id: never, ended or any.
	Reuse string `json:"reuse"`
	// Event is delivered with the start, or to the running orchestration with the id.
	Event *launchEvent `json:"event"`
}

// launchEvent is the event of a start.
type launchEvent struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
}

// check returns all errors of the body.
func (l launch) check(r *request) (reuse orchestrator.Reuse, key string, err error) {
	q := &query{values: url.Values{"orchestrator": {l.Orchestrator}, "id": {l.ID}, "version": {l.Version}, "correlationId": {l.CorrelationID}, "reuse": {l.Reuse}}}
	if q.text("orchestrator", maxOrchestrator) == "" {
		q.problem("orchestrator", "Say which orchestrator is to run.")
	}
	q.text("version", maxOrchestrator)
	q.text("id", maxOrchestrationID)
	if len(tables.EscapeKey(l.ID)) > maxEscapedID {
		q.problem("id", "It is too long as a key: of the %d bytes there, each of / \\ # ? %% ' ~ = takes three.", maxEscapedID)
	}
	if l.CorrelationID != "" && !usableID.MatchString(l.CorrelationID) {
		q.problem("correlationId", "Use 1 to 128 visible ASCII characters.")
	}
	policies := []string{"never", "ended", "any"}
	if policy := q.oneOf("reuse", policies...); policy != "" {
		reuse = orchestrator.Reuse(slices.Index(policies, policy)) // they have the order of the constants
	}
	if l.BusinessReference != nil && (l.BusinessReference.Key == "" || !utf8.ValidString(l.BusinessReference.Key)) {
		q.problem("businessReference", "It needs a key.")
	}
	if e := l.Event; e != nil && (e.Name == "" || len(e.Name) > maxEventName || !utf8.ValidString(e.Name)) {
		q.problem("event", "It needs a name of 1 to %d bytes of UTF-8.", maxEventName)
	}
	key = q.idempotencyKey(r)
	return reuse, key, q.err()
}

// startOrchestration starts an orchestration. The answer means that it is durable. The header Idempotency-Key makes
// repeated requests one orchestration: its id, if the body has none, and its correlation id are derived from it.
func (a *api) startOrchestration(ctx context.Context, r *request) (reply, error) {
	var l launch
	if err := r.decode(&l); err != nil {
		return reply{}, err
	}
	reuse, key, err := l.check(r)
	if err != nil {
		return reply{}, err
	}
	if l.Event != nil && !r.principal().May(access.OrchestrationsSend) {
		return reply{}, &access.DeniedError{Need: access.OrchestrationsSend}
	}
	s := orchestrator.Start{TenantID: r.principal().Scope, ID: l.ID, Orchestrator: l.Orchestrator, Version: l.Version, Input: l.Input, CorrelationID: l.CorrelationID, Reference: l.BusinessReference,
		Reuse: reuse, RequestID: key, Trace: traceparent.From(ctx)}
	if len(s.Input) == 0 {
		s.Input = json.RawMessage("null")
	}
	if l.Event != nil {
		s.Event = &orchestrator.StartEvent{Name: l.Event.Name, Data: l.Event.Data}
	}
	s = a.named(s, r, key)
	if a.admit != nil {
		if s, err = OwnStart(ctx, r.principal(), s, a.owners); err != nil {
			return reply{}, err
		}
		if s, err = a.admit(ctx, s); err != nil {
			if key != "" && errors.Is(err, orchestrator.ErrOtherWork) {
				return reply{}, keyReused()
			}
			return reply{}, err
		}
	}
	if err := a.notOthers(ctx, r, s.ID); err != nil {
		return reply{}, err
	}
	if err := r.call.Begin(ctx, access.Change{Action: "start " + s.Orchestrator, Target: "orchestrations/" + s.ID, Tenant: s.TenantID}); err != nil {
		return reply{}, err
	}
	out, err := a.runtime.Start(ctx, s)
	another := errors.Is(err, orchestrator.ErrOtherWork) || err == nil && s.Event == nil && out.Execution == 1 && !sameDocument(s.Input, out.Input)
	if err != nil && (key == "" || !another) {
		return reply{}, a.whyActive(ctx, s.ID, err)
	}
	if key != "" && another {
		return reply{}, keyReused()
	}
	status, err := a.runtime.Status(ctx, s.ID)
	if err == nil && !r.principal().Sees(status.TenantID) {
		err = orchestrationFailure(orchestrator.ErrExists)
	}
	if err != nil {
		return reply{}, err
	}
	r.after = fmt.Sprintf("%s, execution %d", status.Status, status.Execution)
	return a.taken(status, ""), nil
}

// keyReused returns the answer to a request with the key of another one.
func keyReused() *failure {
	return &failure{status: http.StatusUnprocessableEntity, problem: problem{
		Code: codeKeyReused, Message: "The Idempotency-Key belongs to another request. Repeat that one, or use another key.", Target: "Idempotency-Key",
	}}
}

// named adds missing fields to a start. An engine makes its ids itself.
func (a *api) named(s orchestrator.Start, r *request, key string) orchestrator.Start {
	scoped := "" // each tenant has its own keys
	if scope := r.principal().Scope; scope != "" {
		scoped = "\n" + scope
	}
	derived := func(what string) string {
		return uuid.NewSHA1(uuid.NameSpaceOID, []byte("start\n"+what+"\n"+s.Orchestrator+"\n"+key+scoped)).String()
	}
	if s.CorrelationID == "" && key != "" && s.ID == "" {
		s.CorrelationID = derived("correlation")
	}
	if a.admit != nil {
		return s
	}
	if s.ID == "" && key != "" {
		s.ID = derived("id")
	}
	if s.ID == "" {
		s.ID = uuid.NewString()
	}
	if s.CorrelationID == "" && key == "" {
		s.CorrelationID = r.correlationID
	}
	return s
}

// sameDocument compares JSON, ignoring blanks.
func sameDocument(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// admissionFailure returns the answer to refusals of engines, nil for other errors.
func admissionFailure(err error) *failure {
	var conflict *engine.ConflictError
	switch {
	case errors.As(err, &conflict):
		return &failure{status: http.StatusConflict, header: map[string]string{"Retry-After": strconv.Itoa(int(math.Ceil(max(1, conflict.RetryAfter.Seconds()))))},
			problem: problem{Code: codeInstanceLocked, Message: conflict.Error()}}
	case errors.Is(err, engine.ErrNoEngine):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeUnknownOrchestrator, Message: "There is no such engine here.", Target: "orchestrator"}}
	case errors.Is(err, engine.ErrRefused):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidBody, Message: err.Error()}}
	default:
		return nil
	}
}
