package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/tables"
)

// taskItem is a human task in a list.
type taskItem struct {
	OrchestrationID string       `json:"orchestrationId"`
	TaskID          string       `json:"taskId"`
	Name            string       `json:"name"`
	Engine          string       `json:"engine"`
	CorrelationID   string       `json:"correlationId,omitempty"`
	TenantID        string       `json:"tenantId,omitempty"`
	Status          tasks.Status `json:"status"`
	Roles           []string     `json:"roles"`
	Assignee        string       `json:"assignee,omitempty"`
	AssigneeName    string       `json:"assigneeName,omitempty"`
	CreatedAtUtc    time.Time    `json:"createdAtUtc"`
	ChangedAtUtc    time.Time    `json:"changedAtUtc"`
	DueAtUtc        time.Time    `json:"dueAtUtc,omitzero"`
	EndedAtUtc      time.Time    `json:"endedAtUtc,omitzero"`
	EndedBy         string       `json:"endedBy,omitempty"`
	EndedByName     string       `json:"endedByName,omitempty"`
}

// taskDetail is one human task.
type taskDetail struct {
	taskItem
	Payload json.RawMessage `json:"payload,omitempty"`
	Form    json.RawMessage `json:"form,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
	Events  []taskEvent     `json:"events"`
}

// taskEvent is one entry of a human task's history.
type taskEvent struct {
	Event        tasks.EventKind `json:"event"`
	AtUtc        time.Time       `json:"atUtc"`
	By           string          `json:"by,omitempty"`
	ByName       string          `json:"byName,omitempty"`
	Assignee     string          `json:"assignee,omitempty"`
	AssigneeName string          `json:"assigneeName,omitempty"`
	Roles        []string        `json:"roles"`
	Note         string          `json:"note,omitempty"`
}

// listTasks lists human tasks: open ones by due time, ended ones newest first. Callers of a tenant see those of the
// tenant.
func (a *api) listTasks(ctx context.Context, r *request) (reply, error) {
	person := r.person()
	q := newQuery(r.http.URL.RawQuery, "status", "assignee", "role", "engine", "tenantId", "dueBefore", "limit", "continuationToken")
	f := tasks.Filter{
		Status:   tasks.Status(q.oneOf("status", string(tasks.Created), string(tasks.Assigned), string(tasks.Completed), string(tasks.Canceled))),
		Assignee: q.text("assignee", tasks.MaxPerson), Role: q.text("role", tasks.MaxPerson), Orchestrator: q.oneOf("engine", a.engines...),
		TenantID: q.text("tenantId", tasks.MaxPerson), DueBefore: q.date("dueBefore"),
	}
	limit := cmp.Or(q.limit(), engine.DefaultLimit)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	if person.TenantID != "" {
		if f.TenantID != "" && !person.Sees(tasks.Task{TenantID: f.TenantID}) {
			return reply{data: listOf[tasks.Task](nil, "", taskItemOf)}, nil
		}
		f.TenantID = person.TenantID
	}
	fingerprint := fingerprintOf("tasks", f)
	place, err := openToken(q.values.Get("continuationToken"), fingerprint)
	if err != nil {
		return reply{}, err
	}
	page, err := a.tasks.List(ctx, f, limit, place)
	if place != "" && errors.Is(err, tables.ErrInvalid) {
		err = badToken()
	}
	if err != nil {
		return reply{}, err
	}
	return reply{data: listOf(page.Tasks, sealToken(page.Continuation, fingerprint), taskItemOf)}, nil
}

// taskRef reads the orchestration and the task of the path.
func taskRef(r *request) (tasks.Ref, error) {
	orchestration, ok := r.param("orchestration")
	id, idOK := r.param("task")
	if !ok || !idOK {
		return tasks.Ref{}, tasks.ErrNotFound
	}
	return tasks.Ref{Orchestration: orchestration, ID: id}, nil
}

func (a *api) getTask(ctx context.Context, r *request) (reply, error) {
	ref, err := taskRef(r)
	if err != nil {
		return reply{}, err
	}
	t, err := a.tasks.Get(ctx, ref)
	if err == nil && !r.person().Sees(t) {
		err = tasks.ErrNotFound
	}
	if err != nil {
		return reply{}, err
	}
	return r.taskReply(t), nil
}

// mayRead reports whether the caller can read the contents of a task: readers of orchestrations, its assignee and
// the holders of its roles can.
func (r *request) mayRead(t tasks.Task) bool {
	return r.principal().May(access.OrchestrationsRead) || r.person().Concerned(t) && r.isFor(t)
}

// isFor reports whether a task can be for the caller. A task without roles is for people, its assignee and callers
// with a role in the app, but not for every application with a token.
func (r *request) isFor(t tasks.Task) bool {
	p := r.principal()
	return p.Kind != access.Application || len(t.Roles) > 0 || r.person().Is(t.Assignee) || p.May(access.OrchestrationsRead)
}

// taskReply answers with a task, without its contents if the caller cannot read them. An ended task no longer
// changes, so it has no version.
func (r *request) taskReply(t tasks.Task) reply {
	d := taskDetailOf(t)
	if !r.mayRead(t) {
		d = taskDetail{taskItem: d.taskItem, Events: []taskEvent{}}
	}
	rep := reply{data: d}
	if t.Open() {
		rep.etag = t.ETag
	}
	return rep
}

func taskItemOf(t tasks.Task) taskItem {
	item := taskItem{OrchestrationID: t.Orchestration, TaskID: t.ID, Name: t.Name, Engine: t.Orchestrator, CorrelationID: t.CorrelationID,
		TenantID: t.TenantID, Status: t.Status, Roles: notNil(t.Roles), Assignee: t.Assignee, AssigneeName: t.AssigneeName, CreatedAtUtc: t.CreatedAt, ChangedAtUtc: t.ChangedAt, DueAtUtc: t.DueAt}
	if t.End != nil {
		item.EndedAtUtc, item.EndedBy, item.EndedByName = t.End.At, t.End.By, t.End.ByName
	}
	return item
}

func taskDetailOf(t tasks.Task) taskDetail {
	d := taskDetail{taskItem: taskItemOf(t), Payload: redact.JSON(t.Payload), Form: t.Form, Events: []taskEvent{}}
	if t.End != nil {
		d.Output = redact.JSON(t.End.Output)
	}
	for _, e := range t.Events {
		d.Events = append(d.Events, taskEvent{Event: e.Kind, AtUtc: e.At, By: e.By, ByName: e.ByName, Assignee: e.Assignee, AssigneeName: e.AssigneeName, Roles: notNil(e.Roles), Note: e.Note})
	}
	return d
}

// notNil returns an empty array for nil.
func notNil[T any](some []T) []T {
	if some == nil {
		return []T{}
	}
	return some
}
