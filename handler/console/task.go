package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

// taskPageModel is one task: its question, its answer, and its history.
type taskPageModel struct {
	Task            taskDetail
	Payload, Output Payload
	// Done is the last action of this page, as a sentence; "" for none.
	Done string
	// Acts are its possible actions, those that the user may not take with the reason.
	Acts []taskButton
	// Key makes repeats of the claim form one change.
	Key string
}

// taskButton is an action on a task.
type taskButton struct {
	Button, Link string
	// AtOnce means that it needs no confirmation page.
	AtOnce bool
	// Blocked is the reason why the user cannot take it, "" if they can.
	Blocked Text
}

// Reasons returns the reasons for unavailable actions, each once.
func (p taskPageModel) Reasons() (reasons []Text) {
	for _, a := range p.Acts {
		if a.Blocked != "" && !slices.Contains(reasons, a.Blocked) {
			reasons = append(reasons, a.Blocked)
		}
	}
	return reasons
}

// taskDetail is one task.
type taskDetail struct {
	taskItem
	Payload json.RawMessage `json:"payload"`
	Form    json.RawMessage `json:"form"`
	Output  json.RawMessage `json:"output"`
	Events  []taskEvent     `json:"events"`

	// ETag is the displayed version, "" for an ended one.
	ETag string `json:"-"`
}

// Escalated returns when it went to other roles without an answer; zero if it did not.
func (t taskDetail) Escalated() (at time.Time) {
	for _, e := range t.Events {
		if e.Event == "escalated" {
			at = e.At
		}
	}
	return at
}

// taskEvent is one event of a task.
type taskEvent struct {
	Event        string    `json:"event"`
	At           time.Time `json:"atUtc"`
	By           Text      `json:"by"`
	ByName       Text      `json:"byName"`
	Assignee     Text      `json:"assignee"`
	AssigneeName Text      `json:"assigneeName"`
	Roles        []Text    `json:"roles"`
	Note         Text      `json:"note"`
}

// Who returns the user who did it, "" for the run itself.
func (e taskEvent) Who() Text { return cmp.Or(e.ByName, e.By) }

// Holder returns the assignee afterwards.
func (e taskEvent) Holder() Text { return cmp.Or(e.AssigneeName, e.Assignee) }

// taskRow returns the path of the task in the API.
func (v *visit) taskRow() string {
	return row("tasks", v.r.PathValue("orchestration"), v.r.PathValue("task"))
}

// findTask reads the task in the path.
func (v *visit) findTask(ctx context.Context) (t taskDetail, err error) {
	header, err := v.api.send(ctx, http.MethodGet, v.taskRow(), nil, nil, nil, &t)
	t.ETag = header.Get("ETag")
	t.look(v)
	return t, err
}

// task shows a task.
func task(ctx context.Context, v *visit) (page, error) {
	t, err := v.findTask(ctx)
	if err != nil {
		return page{}, err
	}
	p := taskPageModel{Task: t, Payload: payloadOf(string(t.Payload)), Output: payloadOf(string(t.Output)), Key: v.console.config.NewKey()}
	done := v.r.URL.Query().Get("done")
	for _, a := range taskActs() {
		if done == a.done {
			p.Done = a.said
		}
		if t.Open() {
			p.Acts = append(p.Acts, taskButton{Button: a.button, Link: t.Link() + "/" + a.path, AtOnce: a.atOnce, Blocked: a.blocked(t, v)})
		}
	}
	return page{template: "task", title: "Task " + t.Name.String(), model: p,
		elsewhere: v.thing(t.OrchestrationID+"/"+t.TaskID, showLine("task show", string(t.OrchestrationID), string(t.TaskID)))}, nil
}

// noPart returns the reason why the user may take no action on a task; "" if they may take one.
func noPart(t taskDetail, v *visit) Text {
	switch {
	case !t.Open():
		return Text("The task has ended: it is " + t.Status + ".")
	case !v.may(access.TasksAct):
		return Text("You need the permission " + string(access.TasksAct) + ".")
	default:
		return ""
	}
}

// mine reports whether the task is assigned to the user.
func mine(t taskDetail, v *visit) bool {
	return t.Assignee != "" && strings.EqualFold(string(t.Assignee), string(v.me.ID))
}

// heldByOther returns the reason why the user may not take an action of the assignee.
func heldByOther(t taskDetail) Text {
	return t.Holder() + " has the task. Only whoever has it, or an administrator, can do that."
}

// otherRoles returns the reason why the user may not claim a task.
func otherRoles(t taskDetail) Text {
	names := make([]string, len(t.Roles))
	for n, role := range t.Roles {
		names[n] = string(role)
	}
	return Text("The task is for people with one of the roles " + strings.Join(names, ", ") + ", of which you have none.")
}

// cannotClaim returns the reason why the user cannot claim a task; "" if they can. The API decides; the page shows this
// before.
func cannotClaim(t taskDetail, v *visit) Text {
	switch no := noPart(t, v); {
	case no != "":
		return no
	case mine(t, v):
		return "You have the task already."
	case t.Assignee != "":
		return t.Holder() + " has the task."
	case !t.ForMe && !v.may(access.TasksAdminister):
		return otherRoles(t)
	default:
		return ""
	}
}

// cannotRelease returns the reason why the user cannot release a task.
func cannotRelease(t taskDetail, v *visit) Text {
	switch no := noPart(t, v); {
	case no != "":
		return no
	case t.Assignee == "":
		return "Nobody has the task."
	case !mine(t, v) && !v.may(access.TasksAdminister):
		return heldByOther(t)
	default:
		return ""
	}
}

// cannotWork returns the reason why the user can neither answer nor assign a task.
func cannotWork(t taskDetail, v *visit) Text {
	switch no := noPart(t, v); {
	case no != "":
		return no
	case v.may(access.TasksAdminister), mine(t, v):
		return ""
	case t.Assignee != "":
		return heldByOther(t)
	case !t.ForMe:
		return otherRoles(t)
	default:
		return ""
	}
}

// taskLink returns the address of the page of the task in the path.
func (v *visit) taskLink(query url.Values) string {
	t := taskItem{OrchestrationID: Text(v.r.PathValue("orchestration")), TaskID: Text(v.r.PathValue("task"))}
	return address(t.Link(), query)
}
