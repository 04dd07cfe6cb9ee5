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
)

const (
	// maxShownPayload is how long an input, an output or an event's payload may be that an answer holds, in bytes.
	maxShownPayload = 128 << 10
	// maxWaits is how many waits an orchestration shows.
	maxWaits = 100
	// maxOrchestrationID bounds an orchestration's id, and maxOrchestrator the name of one, in bytes.
	maxOrchestrationID = 400
	maxEscapedID       = 510 // as keys have it
	maxOrchestrator    = 256
	// maxCustomStatus bounds the text that a list looks for in custom statuses, and maxTag the key of a business reference.
	maxCustomStatus = 256
	maxTag          = 256
	// defaultPage is the length of a page that does not say.
	defaultPage = 50
)

// summaryItem is an orchestration as a list shows it.
type summaryItem struct {
	ID            string              `json:"id"`
	Orchestrator  string              `json:"orchestrator"`
	Version       string              `json:"version,omitempty"`
	Status        orchestrator.Status `json:"status"`
	CorrelationID string              `json:"correlationId,omitempty"`
	ParentID      string              `json:"parentId,omitempty"`
	Execution     int                 `json:"execution"`
	StateVersion  int64               `json:"stateVersion"`
	// CustomStatus is what the orchestrator tells of itself, as JSON.
	CustomStatus any `json:"customStatus,omitempty"`
	waitingItem
	CreatedAt time.Time `json:"createdAtUtc"`
	UpdatedAt time.Time `json:"updatedAtUtc"`
	EndedAt   time.Time `json:"endedAtUtc,omitzero"`
	ErrorCode string    `json:"errorCode,omitempty"`
	// Tag is the key of the business reference.
	Tag string `json:"tag,omitempty"`
	// Notice says, in the answer to a command that takes effect later than others, when it does.
	Notice string `json:"notice,omitempty"`
}

// orchestrationDetail is one orchestration: its snapshot (persistence document, section 3), and what its rounds tell.
type orchestrationDetail struct {
	summaryItem
	// Attempt counts the attempts that were made, StatusSince is when a Retrying one failed, or a Stalled one came to a stand.
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
	// InputBytes and OutputBytes are there in place of an input or an output that is too large for an answer.
	InputBytes  int             `json:"inputBytes,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`
	OutputBytes int             `json:"outputBytes,omitempty"`
	Failure     *failureItem    `json:"failure,omitempty"`
	// Calls counts what the execution has called, Waits are those of them that have not ended, the oldest first.
	Calls int        `json:"calls"`
	Waits []waitItem `json:"waits"`
	// PendingEvents are names of events that have come and that nobody has asked for yet.
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

// failureItem is an error as the rounds keep it, without its stack.
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

// getOrchestration shows one orchestration, for one query.
func (a *api) getOrchestration(ctx context.Context, r *request) (reply, error) {
	id, err := orchestrationID(r)
	if err != nil {
		return reply{}, err
	}
	in, err := a.runtime.Inspect(ctx, id)
	if err == nil {
		err = r.mayHave(in.Summary)
	} else if !errors.Is(err, orchestrator.ErrNotFound) && !r.principal().Sees("") {
		err = orchestrationFailure(orchestrator.ErrNotFound) // what cannot be read has no tenant
	}
	if err != nil {
		return reply{}, err
	}
	return reply{data: a.detailOf(in), etag: tagOf(in.StateVersion)}, nil
}

// orchestrationID is the id in the path.
func orchestrationID(r *request) (string, error) {
	id, ok := r.param("orchestration")
	if !ok || len(id) > maxOrchestrationID {
		return "", notFound("No orchestration is called like this: ids have 1 to %d bytes.", maxOrchestrationID)
	}
	return id, nil
}

// tagOf is the ETag of an orchestration that has so many rounds.
func tagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

func (a *api) summaryItemOf(s orchestrator.Summary) summaryItem {
	return summaryItem{
		ID: s.ID, Orchestrator: s.Orchestrator, Version: s.Version, Status: s.Status, CorrelationID: s.CorrelationID, ParentID: s.Parent,
		Execution: s.Execution, StateVersion: s.StateVersion, CustomStatus: customStatusOf(s.CustomStatus), waitingItem: a.waitingItemOf(s),
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, EndedAt: s.EndedAt, ErrorCode: s.ErrorCode, Tag: s.Tag,
	}
}

// customStatusOf is a custom status as JSON.
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

// orchestrationFailure is what errors of the runtime answer, nil for others.
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

// orchestrationPath is where an orchestration is.
func orchestrationPath(id string) string {
	return "/api/orchestrations/" + urlpath.Escape(id)
}
