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

// taskPageModel is one task: what is asked, what was answered, and who did what.
type taskPageModel struct {
	Task            taskDetail
	Payload, Output Payload
	// Done is what was done last from this page, as a sentence; "" for nothing.
	Done string
	// Acts are what can be done with it, those that whoever looks may not do with the reason.
	Acts []taskButton
	// Key makes repeats of the form that claims one change.
	Key string
}

// taskButton is something that can be done with a task.
type taskButton struct {
	Button, Link string
	// AtOnce says that it is done without a page that asks first.
	AtOnce bool
	// Blocked is why it cannot be done by whoever looks, "" if it can.
	Blocked Text
}

// Reasons are why things cannot be done, each once.
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

	// ETag is the version that was looked at, "" of one that has ended.
	ETag string `json:"-"`
}

// Escalated is when it went to other roles because nobody had answered; zero if it did not.
func (t taskDetail) Escalated() (at time.Time) {
	for _, e := range t.Events {
		if e.Event == "escalated" {
			at = e.At
		}
	}
	return at
}

// taskEvent is one thing that happened to a task.
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

// Who did it, "" for the run itself, and Holder is who had the task afterwards.
func (e taskEvent) Who() Text { return cmp.Or(e.ByName, e.By) }

// Holder is who had the task afterwards.
func (e taskEvent) Holder() Text { return cmp.Or(e.AssigneeName, e.Assignee) }

// taskRow is the path of the task in the API.
func (v *visit) taskRow() string {
	return row("tasks", v.r.PathValue("orchestration"), v.r.PathValue("task"))
}

// findTask reads the task that the path names.
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

// noPart is why somebody may do nothing to a task, whatever it is; "" if he may do something.
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

// mine says whether whoever looks has the task.
func mine(t taskDetail, v *visit) bool {
	return t.Assignee != "" && strings.EqualFold(string(t.Assignee), string(v.me.ID))
}

// heldByOther is why somebody may not do what is for whoever has the task.
func heldByOther(t taskDetail) Text {
	return t.Holder() + " has the task. Only whoever has it, or an administrator, can do that."
}

// otherRoles is why somebody may not take a task.
func otherRoles(t taskDetail) Text {
	names := make([]string, len(t.Roles))
	for n, role := range t.Roles {
		names[n] = string(role)
	}
	return Text("The task is for people with one of the roles " + strings.Join(names, ", ") + ", of which you have none.")
}

// cannotClaim is why somebody cannot take a task; "" if he can. The API decides; this is what the page says before.
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

// cannotRelease is why somebody cannot put a task back.
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

// cannotWork is why somebody can neither answer a task nor give it to somebody.
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

// taskLink is the address of the page of the task that the path names.
func (v *visit) taskLink(query url.Values) string {
	t := taskItem{OrchestrationID: Text(v.r.PathValue("orchestration")), TaskID: Text(v.r.PathValue("task"))}
	return address(t.Link(), query)
}
