package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/orchestrator"
)

const (
	// maxEventName bounds the name of an event, maxOperatorReason an operator's reason of a command, in bytes.
	maxEventName      = 256
	maxOperatorReason = 1 << 10
)

// command is the body of a command to an orchestration.
type command struct {
	Reason string `json:"reason"`
}

// purgedItem counts the purged data.
type purgedItem struct {
	ID string `json:"id"`
}

// raiseEvent sends an event to an orchestration; the body is its value, any JSON, and an empty body is null. The
// answer means that it is durable; it is kept until the orchestration waits for it.
func (a *api) raiseEvent(ctx context.Context, r *request) (reply, error) {
	name, ok := r.param("event")
	if !ok || len(name) > maxEventName || !utf8.ValidString(name) {
		return reply{}, notFound("No event is called like this: names have 1 to %d bytes.", maxEventName)
	}
	value, err := r.value()
	if err != nil {
		return reply{}, err
	}
	return a.tell(ctx, r, "raise "+name, orchestrator.Payload{Event: name, Data: value})
}

// commanded returns the endpoint of a command.
func (a *api) commanded(name string) endpoint {
	return func(ctx context.Context, r *request) (reply, error) {
		reason, err := a.reason(r)
		if err != nil {
			return reply{}, err
		}
		id, err := orchestrationID(r)
		if err != nil {
			return reply{}, err
		}
		if err := a.readable(ctx, r, id); err != nil {
			return reply{}, err // no runtime could carry it out
		}
		return a.tell(ctx, r, name, orchestrator.Payload{Command: name, Reason: reason})
	}
}

// reason reads the body of a command: its reason, with the caller.
func (a *api) reason(r *request) (string, error) {
	var c command
	if err := r.decode(&c); err != nil {
		return "", err
	}
	q := newQuery("")
	q.values.Set("reason", c.Reason)
	reason := q.text("reason", maxOperatorReason)
	// A redaction may reach to the end of the text, and must not remove the caller.
	return strings.TrimSpace(redact.Text(reason) + " (by " + r.by() + ")"), q.err()
}

// tell sends an event or a command to an orchestration that has not ended. With If-Match, the event or command is for
// that state only: if the orchestration continues before it arrives, it is dropped.
func (a *api) tell(ctx context.Context, r *request, action string, p orchestrator.Payload) (reply, error) {
	id, s, version, err := a.orchestration(ctx, r)
	if err != nil {
		return reply{}, err
	}
	if s.Ended() {
		return reply{}, &failure{status: http.StatusConflict, problem: problem{Code: codeInvalidState, Message: "The orchestration has ended: " + string(s.Status) + "."}}
	}
	key, err := requestKey(r)
	if err != nil {
		return reply{}, err
	}
	if key != "" {
		key = "request:" + key
	}
	if err := r.call.Begin(ctx, orchestrationChange(action, s, p.Reason)); err != nil {
		return reply{}, err
	}
	if err := a.runtime.Send(ctx, orchestrator.Signal{SignalID: key, InstanceID: id, Type: orchestrator.ExternalSignal, ExpectedVersion: version, Payload: p}); err != nil {
		return reply{}, err
	}
	return a.taken(s, noticeOf(s.Status, p)), nil
}

// orchestration returns the state of the orchestration in the path, and the version of If-Match, 0 for any.
func (a *api) orchestration(ctx context.Context, r *request) (id string, s orchestrator.Summary, version int64, err error) {
	if id, err = orchestrationID(r); err != nil {
		return id, s, 0, err
	}
	s, err = a.runtime.Status(ctx, id)
	if errors.Is(err, orchestrator.ErrNotFound) { // or it is damaged and has no status
		err = cmp.Or(a.readable(ctx, r, id), err)
	}
	if err == nil {
		err = r.mayHave(s)
	}
	if err != nil {
		return id, s, 0, err
	}
	tag := ifMatch(r.http.Header)
	if tag == "" {
		return id, s, 0, nil
	}
	if tag != tagOf(s.StateVersion) {
		return id, s, 0, &failure{status: http.StatusPreconditionFailed, header: map[string]string{"ETag": tagOf(s.StateVersion)}, problem: problem{
			Code: codePrecondition, Message: "The orchestration is not any more what If-Match names. Read it again.", Target: "If-Match",
		}}
	}
	return id, s, s.StateVersion, nil
}

// requestKey returns the key that identifies repeats of a request: the header Idempotency-Key, or the common part of
// the host's own repeats.
func requestKey(r *request) (string, error) {
	q := newQuery("")
	key := q.idempotencyKey(r)
	return cmp.Or(key, RequestKey(r.http.Header)), q.err()
}

// taken returns the answer for an orchestration that will receive a signal: its state before, and when the signal
// takes effect if not immediately.
func (a *api) taken(s orchestrator.Summary, notice string) reply {
	item := a.summaryItemOf(s)
	item.Notice = notice
	return reply{data: item, status: http.StatusAccepted, header: map[string]string{"Location": orchestrationPath(s.ID), "Retry-After": pollAfter}}
}

// revived returns the endpoint of an action that runs an ended orchestration again.
func (a *api) revived(action string, do func(rt *orchestrator.Runtime, ctx context.Context, id, requestID string) (orchestrator.Outcome, error)) endpoint {
	return func(ctx context.Context, r *request) (reply, error) {
		reason, err := a.reason(r)
		if err != nil {
			return reply{}, err
		}
		id, s, _, err := a.orchestration(ctx, r)
		if err != nil {
			return reply{}, err
		}
		key, err := requestKey(r)
		if err != nil {
			return reply{}, err
		}
		if err := r.call.Begin(ctx, orchestrationChange(action, s, reason)); err != nil {
			return reply{}, err
		}
		out, err := do(a.runtime, ctx, id, key)
		if err != nil {
			return reply{}, a.whyActive(ctx, id, err)
		}
		a.log.InfoContext(ctx, "orchestration runs again", "orchestrationId", id, "execution", out.Execution, "reason", reason, "correlationId", r.correlationID)
		if s, err = a.runtime.Status(ctx, id); err != nil {
			return reply{}, err
		}
		r.after = fmt.Sprintf("%s, execution %d", s.Status, s.Execution)
		return a.taken(s, ""), nil
	}
}

// purgeOrchestration deletes all data of an ended orchestration, and of those that it waited for. After a timeout,
// the same request continues. With force, it is for an unreadable one.
func (a *api) purgeOrchestration(ctx context.Context, r *request) (reply, error) {
	id, err := orchestrationID(r)
	if err != nil {
		return reply{}, err
	}
	q := newQuery(r.http.URL.RawQuery, "force", "reason")
	forced, reason := q.oneOf("force", "true") != "", q.text("reason", maxOperatorReason)
	if forced != (strings.TrimSpace(reason) != "") {
		q.problem("reason", "A forced purge needs a reason, which is kept in the log; another one takes none.")
	}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	if forced {
		return a.purgeByForce(ctx, r, id, reason)
	}
	_, s, _, err := a.orchestration(ctx, r)
	if err != nil {
		return reply{}, err
	}
	if err := r.call.Begin(ctx, orchestrationChange("purge", s, "")); err != nil {
		return reply{}, err
	}
	if err := a.runtime.Purge(ctx, id); err != nil {
		return reply{}, a.whyActive(ctx, id, err)
	}
	r.after = "purged"
	return reply{data: purgedItem{id}}, nil
}

// purgeByForce deletes all data of an orchestration that is unreadable or has ended.
func (a *api) purgeByForce(ctx context.Context, r *request, id, reason string) (reply, error) {
	if !r.principal().May(access.OrchestrationsForcePurge) {
		return reply{}, &access.DeniedError{Need: access.OrchestrationsForcePurge}
	}
	change := access.Change{Action: "forcePurge", Target: "orchestrations/" + id, Reason: reason}
	if s, err := a.runtime.Status(ctx, id); err == nil { // nothing of it may be readable
		change.Before, change.Tenant = string(s.Status), s.TenantID
	}
	if err := r.call.Begin(ctx, change); err != nil {
		return reply{}, err
	}
	a.log.WarnContext(ctx, "an orchestration is purged by force", "orchestrationId", id, "by", r.by(), "reason", engine.Redact(reason), "correlationId", r.correlationID)
	if err := a.runtime.ForcePurge(ctx, id); err != nil {
		return reply{}, a.whyActive(ctx, id, err)
	}
	r.after = "purged"
	return reply{data: purgedItem{id}}, nil
}

// mayHave hides an orchestration of another tenant.
func (r *request) mayHave(s orchestrator.Summary) error {
	if r.principal().Sees(s.TenantID) {
		return nil
	}
	return hidden(orchestrationFailure(orchestrator.ErrNotFound))
}

// readable reports whether all of an orchestration is readable. An unreadable one has no tenant.
func (a *api) readable(ctx context.Context, r *request, id string) error {
	err := a.runtime.Readable(ctx, id)
	if err != nil && !r.principal().Sees("") {
		return hidden(orchestrationFailure(orchestrator.ErrNotFound))
	}
	return err
}

// orchestrationChange returns the audit record of an orchestration's change.
func orchestrationChange(action string, s orchestrator.Summary, reason string) access.Change {
	return access.Change{Action: action, Target: "orchestrations/" + s.ID, Tenant: s.TenantID, Before: string(s.Status), Reason: reason}
}
