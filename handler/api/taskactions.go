package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// taskChange is the body of an action on a human task; each action has its own members.
type taskChange struct {
	Assignee     *string         `json:"assignee"`
	AssigneeName string          `json:"assigneeName"`
	Output       json.RawMessage `json:"output"`
	Note         string          `json:"note"`
}

// taskAction is an action on a human task. assign and output are its required members, note an optional one.
type taskAction struct {
	assign, output, note bool
	run                  func(ctx context.Context, service *tasks.Service, ref tasks.Ref, by tasks.Person, c taskChange, etag string) (tasks.Task, error)
}

// taskActions returns the endpoints below a human task, by the last word of the path.
func taskActions() map[string]taskAction {
	assign := taskAction{assign: true, note: true, run: func(ctx context.Context, service *tasks.Service, ref tasks.Ref, by tasks.Person, c taskChange, etag string) (tasks.Task, error) {
		return service.Assign(ctx, ref, by, tasks.Person{ID: *c.Assignee, Name: c.AssigneeName}, etag, c.Note)
	}}
	return map[string]taskAction{
		"claim": {run: func(ctx context.Context, service *tasks.Service, ref tasks.Ref, by tasks.Person, _ taskChange, etag string) (tasks.Task, error) {
			return service.Claim(ctx, ref, by, etag)
		}},
		"release": {note: true, run: func(ctx context.Context, service *tasks.Service, ref tasks.Ref, by tasks.Person, c taskChange, etag string) (tasks.Task, error) {
			return service.Release(ctx, ref, by, etag, c.Note)
		}},
		"assign":   assign,
		"reassign": assign,
		"complete": {output: true, note: true, run: func(ctx context.Context, service *tasks.Service, ref tasks.Ref, by tasks.Person, c taskChange, etag string) (tasks.Task, error) {
			return service.Complete(ctx, ref, by, c.Output, etag, c.Note)
		}},
	}
}

// acted does one of the actions.
func (a *api) acted(name string) endpoint {
	action := taskActions()[name]
	return func(ctx context.Context, r *request) (reply, error) {
		ref, err := taskRef(r)
		if err != nil {
			return reply{}, err
		}
		var c taskChange
		if err := r.decode(&c); err != nil {
			return reply{}, err
		}
		if err := action.check(c); err != nil {
			return reply{}, err
		}
		t, err := a.tasks.Get(ctx, ref)
		if err == nil && !r.person().Sees(t) {
			return reply{}, hidden(taskFailure(tasks.ErrNotFound))
		}
		if err == nil && !r.isFor(t) {
			err = tasks.ErrForbidden
		}
		if err == nil && action.assign {
			err = r.assignable(*c.Assignee, t.TenantID)
		}
		if err != nil {
			return reply{}, err
		}
		err = r.call.Begin(ctx, access.Change{Action: name, Target: "tasks/" + ref.String(), Tenant: t.TenantID, Before: taskState(t), Reason: c.Note})
		if err != nil {
			return reply{}, err
		}
		if t, err = action.run(ctx, a.tasks, ref, r.person(), c, ifMatch(r.http.Header)); err != nil {
			return reply{}, err
		}
		r.after = taskState(t)
		return r.taskReply(t), nil
	}
}

// taskState returns the state of a task for the audit log.
func taskState(t tasks.Task) string {
	if t.Assignee == "" {
		return string(t.Status)
	}
	return string(t.Status) + ", " + t.Assignee
}

// check checks a body for the action.
func (t taskAction) check(c taskChange) error {
	if len(c.Output) > tasks.MaxOutput {
		return &failure{status: http.StatusRequestEntityTooLarge, problem: problem{
			Code: codeBodyTooLarge, Message: fmt.Sprintf("The output may have %d bytes at most.", tasks.MaxOutput), Target: "output"}}
	}
	q := &query{values: url.Values{"note": {c.Note}, "assigneeName": {c.AssigneeName}}}
	q.text("note", tasks.MaxNote)
	q.text("assigneeName", tasks.MaxPerson)
	switch {
	case !t.assign && (c.Assignee != nil || c.AssigneeName != ""):
		q.problem("assignee", "Leave this member out: the task is given to nobody by this.")
	case t.assign && (c.Assignee == nil || *c.Assignee == ""):
		q.problem("assignee", "Say to whom the task is given.")
	case t.assign:
		q.values.Set("assignee", *c.Assignee)
		q.text("assignee", tasks.MaxPerson)
	}
	switch {
	case t.output && c.Output == nil:
		q.problem("output", "Give the answer to the task, as JSON.")
	case !t.output && c.Output != nil:
		q.problem("output", "Leave this member out: the task does not end by this.")
	case !t.note && c.Note != "":
		q.problem("note", "Leave this member out: this leaves no note.")
	}
	return q.err()
}

// taskFailure returns the answer to errors about human tasks, nil for others.
func taskFailure(err error) *failure {
	var conflict *tasks.ConflictError
	switch {
	case errors.As(err, &conflict):
		text := fmt.Sprintf("The task is %s since %s", conflict.Status, conflict.At.Format(time.RFC3339))
		if conflict.By != "" {
			text += ", by " + cmp.Or(conflict.ByName, conflict.By)
		}
		return &failure{status: http.StatusConflict, problem: problem{Code: codeTaskTaken, Message: text + "."}}
	case errors.Is(err, tasks.ErrNotFound):
		return notFound("There is no such task.")
	case errors.Is(err, tasks.ErrForbidden):
		return forbidden("The task is for somebody else: its roles and its assignee say for whom.")
	case errors.Is(err, tasks.ErrChanged):
		return &failure{status: http.StatusPreconditionFailed, problem: problem{
			Code: codePrecondition, Message: "The task is not any more what If-Match names. Read it again.", Target: "If-Match"}}
	case errors.Is(err, tasks.ErrOutput):
		return &failure{status: http.StatusUnprocessableEntity, problem: problem{Code: codeInvalidOutput, Message: err.Error(), Target: "output"}}
	case errors.Is(err, tasks.ErrInvalid):
		return &failure{status: http.StatusBadRequest, problem: problem{Code: codeInvalidParameter, Message: err.Error()}}
	default:
		return nil
	}
}
