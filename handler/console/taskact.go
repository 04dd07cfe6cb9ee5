package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/vibedata/roundhouse/handler/access"
)

// maxNote is the API's limit for a note, in bytes.
const maxNote = 2000

// taskAct is an action on a task. It has its own page, which keeps the input when the API refuses it.
type taskAct struct {
	// path is the last segment of its address and of that of the API, done the key of the notice on the page of the task,
	// and said its text.
	path, done, said string
	// title is its name, button the label of the button, and consequence the effect.
	title, button, consequence string
	// note, assign and answer are its inputs; atOnce means that the page of the task has the form already.
	note, assign, answer, atOnce bool
	blocked                      func(t taskDetail, v *visit) Text
	// reached reports whether a task is already in the resulting state, so that a form which is sent twice acts once; nil
	// where the API reports that.
	reached func(t taskDetail, v *visit, form url.Values) bool
}

// taskActs returns all of them.
func taskActs() []taskAct {
	return []taskAct{
		{path: "complete", done: "completed", said: "The task is completed, and its run goes on.", title: "Answer a task", button: "Answer", note: true, answer: true, blocked: cannotWork,
			consequence: "The task ends with your answer and your name, and its run goes on with it. It cannot be taken back."},
		{path: "claim", done: "claimed", said: "You have the task now.", title: "Claim a task", button: "Claim", atOnce: true, blocked: cannotClaim,
			reached:     func(t taskDetail, v *visit, _ url.Values) bool { return mine(t, v) },
			consequence: "You have the task then, and others see that."},
		{path: "release", done: "released", said: "The task is there for others again.", title: "Release a task", button: "Release", note: true, blocked: cannotRelease,
			reached:     func(t taskDetail, _ *visit, _ url.Values) bool { return t.Status == taskCreated },
			consequence: "Nobody has the task then, and everybody whom it is for can claim it."},
		{path: "assign", done: "assigned", said: "The task was given to somebody.", title: "Assign a task", button: "Assign", note: true, assign: true, blocked: cannotWork,
			reached: func(t taskDetail, _ *visit, form url.Values) bool {
				return t.Assignee != "" && strings.EqualFold(string(t.Assignee), form.Get("assignee"))
			},
			consequence: "The person has the task then. Nobody is told by this."},
	}
}

// taskActPage is its form.
type taskActPage struct {
	Task                       taskDetail
	Payload                    Payload
	Title, Button, Consequence string
	// Action is the target of the form, ETag the displayed version, and Key makes repeats of the form one change.
	Action, ETag, Key string
	// Blocked is the reason why the user cannot take it, and Problem the error; "" for none.
	Blocked, Problem Text
	// HasNote and HasAssignee are its inputs; MaxNote bounds the note in bytes.
	HasNote, HasAssignee         bool
	MaxNote                      int
	Note, Assignee, AssigneeName string
	Answer                       *documentEntry
}

// pageOf returns the form for a task.
func (a taskAct) pageOf(t taskDetail, v *visit) *taskActPage {
	here := t.Link() + "/" + a.path
	p := &taskActPage{Task: t, Payload: payloadOf(string(t.Payload)), Title: a.title, Button: a.button, Consequence: a.consequence, Action: here, ETag: t.ETag,
		Key: v.console.config.NewKey(), Blocked: a.blocked(t, v), HasNote: a.note, HasAssignee: a.assign, MaxNote: maxNote}
	if a.answer {
		asJSON := v.r.URL.Query().Get("as") == "json"
		p.Answer = entryOf("answer", t.Form, asJSON, here, here+"?as=json")
		p.Answer.Name, p.Answer.Required, p.Answer.Off = "output", true, p.Blocked != ""
		if asJSON {
			p.Action += "?as=json"
		}
	}
	return p
}

// enter stores the form's values in it again.
func (p *taskActPage) enter(form url.Values) {
	p.Key = cmp.Or(form.Get("key"), p.Key)
	p.Note, p.Assignee, p.AssigneeName = lines(form.Get("note")), form.Get("assignee"), form.Get("assigneeName")
	if p.Answer != nil {
		p.Answer.enter(form)
	}
}

// body returns the API's request body, or the error of the input.
func (p *taskActPage) body() (map[string]any, Text) {
	body := map[string]any{}
	if p.HasNote && p.Note != "" {
		body["note"] = p.Note
	}
	if p.HasAssignee {
		body["assignee"] = p.Assignee
		if p.AssigneeName != "" {
			body["assigneeName"] = p.AssigneeName
		}
	}
	if p.Answer == nil {
		return body, ""
	}
	output, problem := p.Answer.document()
	body["output"] = output
	return body, problem
}

// askTaskAct shows the form.
func askTaskAct(a taskAct) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		t, err := v.findTask(ctx)
		if err != nil {
			return page{}, err
		}
		return page{template: "taskact", title: a.title, model: a.pageOf(t, v)}, nil
	}
}

// doTaskAct does it, and leads back to the task. After a refusal, the form is shown again with the input, and the
// current task.
func doTaskAct(a taskAct) visitor {
	return func(ctx context.Context, v *visit) (page, error) {
		if err := v.r.ParseForm(); err != nil {
			return refusedPage(http.StatusBadRequest, "InvalidRequestBody", "The form cannot be read, or is too large."), nil
		}
		form := v.r.PostForm
		t, err := v.findTask(ctx)
		if err != nil {
			return page{}, err
		}
		p := a.pageOf(t, v)
		p.enter(form)
		body, problem := p.body()
		if problem != "" {
			p.Problem = problem
			return page{template: "taskact", title: a.title, status: http.StatusUnprocessableEntity, code: "InvalidTaskOutput", model: p}, nil
		}
		header := http.Header{"Idempotency-Key": {p.Key}}
		if seen := form.Get("etag"); seen != "" { // the decision is about the displayed version
			header.Set("If-Match", seen)
		}
		_, err = v.api.send(ctx, http.MethodPost, v.taskRow()+"/"+a.path, nil, header, body, nil)
		refused, ok := asAPIError(err)
		done := err == nil || refused != nil && refused.Status == http.StatusPreconditionFailed && a.reached != nil && a.reached(t, v, form)
		switch {
		case done:
			return page{to: v.taskLink(url.Values{"done": {a.done}})}, nil
		case !ok || refused.Status == http.StatusNotFound:
			return page{}, err
		}
		p.Problem = refused.Message
		return page{template: "taskact", title: a.title, status: refused.Status, code: refused.Code, model: p}, nil
	}
}

// taskRoutes are those of tasks.
func taskRoutes() []route {
	routes := []route{
		routeOf(http.MethodGet, tasksPath, access.TasksRead, taskList),
		routeOf(http.MethodGet, taskPath, access.TasksRead, task),
	}
	for _, a := range taskActs() {
		path := taskPath + "/" + a.path
		routes = append(routes, routeOf(http.MethodGet, path, access.TasksRead, askTaskAct(a)),
			routeOf(http.MethodPost, path, access.TasksAct, doTaskAct(a)))
	}
	return routes
}
