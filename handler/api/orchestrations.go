package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/internal/urlpath"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

const (
	// maxShownPayload bounds an input, an output or an event's payload in an answer, in bytes.
	maxShownPayload = 128 << 10
	// maxWaits bounds the waits of an orchestration in an answer.
	maxWaits = 100
	// maxOrchestrationID bounds an orchestration's id, and maxOrchestrator an orchestrator's name, in bytes.
	maxOrchestrationID = 400
	maxEscapedID       = 510 // in its form as a key
	maxOrchestrator    = 256
	// maxCustomStatus bounds the text of a custom status filter, and maxTag the key of a business reference.
	maxCustomStatus = 256
	maxTag          = 256
	// defaultPage is the default length of a page.
	defaultPage = 50
)

// summaryItem is an orchestration in a list.
type summaryItem struct {
	ID            string              `json:"id"`
	Orchestrator  string              `json:"orchestrator"`
	Version       string              `json:"version,omitempty"`
	Status        orchestrator.Status `json:"status"`
	CorrelationID string              `json:"correlationId,omitempty"`
	ParentID      string              `json:"parentId,omitempty"`
	Execution     int                 `json:"execution"`
	StateVersion  int64               `json:"stateVersion"`
	// CustomStatus is the orchestrator's custom status, as JSON.
	CustomStatus any `json:"customStatus,omitempty"`
	waitingItem
	CreatedAt time.Time `json:"createdAtUtc"`
	UpdatedAt time.Time `json:"updatedAtUtc"`
	EndedAt   time.Time `json:"endedAtUtc,omitzero"`
	ErrorCode string    `json:"errorCode,omitempty"`
	// Tag is the key of the business reference.
	Tag string `json:"tag,omitempty"`
	// Notice is set in the answer to a command that takes effect late, and states when.
	Notice string `json:"notice,omitempty"`
}

// orchestrationDetail is one orchestration: its snapshot (persistence document, section 3), and data of its rounds.
type orchestrationDetail struct {
	summaryItem
	// Attempt counts the attempts, StatusSince is when a Retrying one failed, or a Stalled one stalled.
	Attempt           int                     `json:"attempt"`
	StatusSince       time.Time               `json:"statusSinceUtc,omitzero"`
	WaitingToken      string                  `json:"waitingToken,omitempty"`
	Round             int                     `json:"round"`
	LastExecutedBy    string                  `json:"lastExecutedBy,omitempty"`
	LastSignalID      string                  `json:"lastSignalId,omitempty"`
	RuntimeInstanceID string                  `json:"runtimeInstanceId"`
	SchemaVersion     int                     `json:"snapshotSchemaVersion"`
	ResumePointer     json.RawMessage         `json:"resumePointer,omitempty"`
	State             json.RawMessage         `json:"state,omitempty"`
	Reference         *orchestrator.Reference `json:"businessReference,omitempty"`
	LastError         *failureItem            `json:"lastError,omitempty"`
	Input             json.RawMessage         `json:"input,omitempty"`
	// InputBytes and OutputBytes replace an input or an output that is too large for an answer.
	InputBytes  int             `json:"inputBytes,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`
	OutputBytes int             `json:"outputBytes,omitempty"`
	Failure     *failureItem    `json:"failure,omitempty"`
	// Calls counts the calls of the execution, Waits are those that have not ended, the oldest first.
	Calls int        `json:"calls"`
	Waits []waitItem `json:"waits"`
	// PendingEvents are names of received events that the orchestration has not waited for yet.
	PendingEvents []string `json:"pendingEvents"`
}

// waitItem is a call that has not ended.
type waitItem struct {
	Kind        orchestrator.CallKind `json:"kind"`
	Name        string                `json:"name,omitempty"`
	ChildID     string                `json:"childId,omitempty"`
	Attempts    int                   `json:"attempts,omitempty"`
	ScheduledAt time.Time             `json:"scheduledAtUtc"`
}

// failureItem is an error in the rounds, without its stack.
type failureItem struct {
	Message   string `json:"message"`
	Code      string `json:"code,omitempty"`
	Permanent bool   `json:"permanent,omitempty"`
}

// orchestrationFilter reads the parameters that select orchestrations.
func orchestrationFilter(q *query) orchestrator.Filter {
	from, to := q.period()
	f := orchestrator.Filter{
		Prefix:       q.text("idPrefix", maxOrchestrationID),
		Orchestrator: q.text("orchestrator", maxOrchestrator),
		CreatedFrom:  from,
		CreatedTo:    to,
	}
	var known []string
	for _, s := range allStatuses() {
		known = append(known, string(s))
	}
	if s := q.oneOf("status", known...); s != "" {
		f.Statuses = []orchestrator.Status{orchestrator.Status(s)}
	}
	return f
}

// getOrchestration returns one orchestration, for one query.
func (a *api) getOrchestration(ctx context.Context, r *request) (reply, error) {
	id, err := orchestrationID(r)
	if err != nil {
		return reply{}, err
	}
	in, err := a.runtime.Inspect(ctx, id)
	if err == nil {
		err = r.mayHave(in.Summary)
	} else if !errors.Is(err, orchestrator.ErrNotFound) && !r.principal().Sees("") {
		err = orchestrationFailure(orchestrator.ErrNotFound) // an unreadable one has no tenant
	}
	if err != nil {
		return reply{}, err
	}
	return reply{data: a.detailOf(in), etag: tagOf(in.StateVersion)}, nil
}

// orchestrationID returns the id in the path.
func orchestrationID(r *request) (string, error) {
	id, ok := r.param("orchestration")
	if !ok || len(id) > maxOrchestrationID {
		return "", notFound("No orchestration is called like this: ids have 1 to %d bytes.", maxOrchestrationID)
	}
	return id, nil
}

// tagOf returns the ETag of an orchestration that has so many rounds.
func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

func (a *api) summaryItemOf(s orchestrator.Summary) summaryItem {
	return summaryItem{
		ID: s.ID, Orchestrator: s.Orchestrator, Version: s.Version, Status: s.Status, CorrelationID: s.CorrelationID, ParentID: s.Parent,
		Execution: s.Execution, StateVersion: s.StateVersion, CustomStatus: customStatusOf(s.CustomStatus), waitingItem: a.waitingItemOf(s),
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, EndedAt: s.EndedAt, ErrorCode: s.ErrorCode, Tag: s.Tag,
	}
}

// customStatusOf returns a custom status as JSON.
func customStatusOf(text string) any {
	switch {
	case text == "":
		return nil
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	default:
		return text
	}
}

func (a *api) detailOf(in orchestrator.Inspection) orchestrationDetail {
	s, out := in.Snapshot, in.Outcome
	d := orchestrationDetail{
		summaryItem: a.summaryItemOf(s.Summary), Attempt: len(out.Earlier) + 1, StatusSince: statusSince(in), WaitingToken: s.WaitingToken, Round: s.Round, LastExecutedBy: s.Node, LastSignalID: s.LastSignal,
		RuntimeInstanceID: s.RuntimeInstanceID, SchemaVersion: s.SchemaVersion, ResumePointer: s.ResumePointer, State: redact.JSON(s.State),
		Reference: s.Reference, LastError: failureItemOf(s.LastError), Failure: failureItemOf(out.Failure), Calls: len(out.Calls), Waits: []waitItem{},
	}
	d.Input, d.InputBytes = shownPayload(out.Input)
	d.Output, d.OutputBytes = shownPayload(out.Output)
	for _, c := range out.Calls {
		if out.EndedAt.IsZero() && c.EndedAt.IsZero() && len(d.Waits) < maxWaits {
			d.Waits = append(d.Waits, waitItem{c.Kind, c.Name, c.Child, c.Attempts, c.ScheduledAt})
		}
	}
	d.PendingEvents = shownPendingEvents(in)
	return d
}

func failureItemOf(f *orchestrator.Failure) *failureItem {
	if f == nil {
		return nil
	}
	return &failureItem{f.Message, f.Code, f.Permanent}
}

// orchestrationFailure returns the answer to errors of the runtime, nil for others.
func orchestrationFailure(err error) *failure {
	conflict := func(code, text string) *failure {
		return &failure{status: http.StatusConflict, problem: problem{Code: code, Message: text}}
	}
	switch {
	case errors.Is(err, orchestrator.ErrNotFound):
		return notFound("There is no such orchestration.")
	case errors.Is(err, orchestrator.ErrUnknownOrchestrator):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeUnknownOrchestrator, Message: "There is no such orchestrator here.", Target: "orchestrator"}}
	case errors.Is(err, orchestrator.ErrExists):
		return conflict(codeExists, "There is an orchestration of this id, which was started as another one.")
	case errors.Is(err, orchestrator.ErrActive):
		return activeFailure("The orchestration has not ended. Wait for its end, or terminate it.")
	case errors.Is(err, orchestrator.ErrEnded):
		return conflict(codeInvalidState, "The orchestration has ended in a way that does not allow this: rewind what failed, restart what ended.")
	case errors.Is(err, nodes.ErrFenced):
		return storageUnavailable("This process lost its lease because storage answered too late, and nothing was done. Repeat the request.")
	case errors.Is(err, orchestrator.ErrElsewhere) && storageTrouble(err):
		return nil
	case errors.Is(err, orchestrator.ErrElsewhere):
		f := conflict(codeActive, "The orchestration is being changed by others. Repeat the request.")
		f.header = map[string]string{"Retry-After": retryAfter}
		return f
	case errors.Is(err, orchestrator.ErrNewerSchema):
		return conflict(codeNewerSchema, "The orchestration was written by a newer version of this program. Use that.")
	case errors.Is(err, orchestrator.ErrContinuation):
		return badToken()
	case errors.Is(err, orchestrator.ErrCorrupt):
		return &failure{status: http.StatusInternalServerError, problem: problem{
			Code: codeDamaged, Message: "What is stored of the orchestration is damaged, so that nobody can go on with it or end it. The log has the reason under the " +
				"correlation id. Restore its rows, or purge it by force: DELETE /api/orchestrations/{id}?force=true&reason=... (docs/recovery.md).",
		}}
	default:
		return nil
	}
}

// orchestrationPath returns the path of an orchestration.
func orchestrationPath(id string) string {
	return "/api/orchestrations/" + urlpath.Escape(id)
}
