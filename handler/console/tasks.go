package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/urlpath"
)

const (
	tasksPath = Root + "/tasks"
	taskPath  = tasksPath + "/:orchestration/:task"
)

// These are the views of tasks, as the address has them; without one, it is mine.
const (
	viewMine  = "mine"
	viewClaim = "claim"
	viewAll   = "all"
)

// These are the states of tasks.
const (
	taskCreated   = "Created"
	taskAssigned  = "Assigned"
	taskCompleted = "Completed"
	taskCanceled  = "Canceled"
)

// openStatus is the status in the address that selects tasks that have not ended.
const openStatus = "open"

// taskFilters are the names of what selects tasks, in the address of the console and of the API.
var taskFilters = []string{"status", "assignee", "role", "engine", "tenantId", "dueBefore"}

// taskFilter selects tasks, as the address has it.
type taskFilter struct {
	View, Status, Assignee, Role, Engine, Tenant, DueBefore string

	values url.Values
}

func taskFilterOf(query url.Values) taskFilter {
	f := taskFilter{View: query.Get("view"), values: url.Values{}}
	if !slices.Contains([]string{viewClaim, viewAll}, f.View) {
		f.View = viewMine
	}
	for _, name := range taskFilters {
		if value := query.Get(name); value != "" {
			f.values.Set(name, value)
		}
	}
	get := f.values.Get
	f.Status, f.Assignee, f.Role, f.Engine, f.Tenant, f.DueBefore = cmp.Or(get("status"), openStatus), get("assignee"), get("role"), get("engine"), get("tenantId"), get("dueBefore")
	return f
}

// Statuses are what the form offers.
func (taskFilter) Statuses() []string {
	return []string{openStatus, taskCreated, taskAssigned, taskCompleted, taskCanceled}
}

// Narrowed says whether a filter is given.
func (f taskFilter) Narrowed() bool { return len(f.values) > 0 }

// All says whether the view is that of all tasks, which alone can be selected by who has them.
func (f taskFilter) All() bool { return f.View == viewAll }

// Reset is the address of the view without the filter.
func (f taskFilter) Reset() string { return address(tasksPath, url.Values{"view": {f.View}}) }

// list is the address of what the filter selects, from a place of the list on.
func (f taskFilter) list(token string) string {
	query := url.Values{"view": {f.View}, "continuationToken": {token}}
	for name, values := range f.values {
		query[name] = values
	}
	return address(tasksPath, query)
}

// query is the filter as the API has it, for somebody.
func (f taskFilter) query(who me) url.Values {
	out := url.Values{}
	for name, values := range f.values {
		out[name] = values
	}
	switch f.View {
	case viewMine:
		out.Set("assignee", string(who.ID))
		out.Del("status")
	case viewClaim:
		out.Set("status", taskCreated)
		out.Del("assignee")
	}
	if f.All() && f.Status == openStatus {
		out.Del("status")
	}
	return out
}

// taskView is a view, as the tabs have it.
type taskView struct {
	Name, Link string
	Current    bool
}

// Views are the tabs.
func (f taskFilter) Views() (views []taskView) {
	for _, v := range [][2]string{{viewMine, "Mine"}, {viewClaim, "To claim"}, {viewAll, "All"}} {
		views = append(views, taskView{Name: v[1], Link: address(tasksPath, url.Values{"view": {v[0]}}), Current: f.View == v[0]})
	}
	return views
}

// tasksPage is a page of the list of tasks.
type tasksPage struct {
	Filter taskFilter
	Items  []taskItem
	// Next is the address of what follows, and First that of the beginning; "" where there is none.
	Next, First string
	// Problem is what is wrong with the filter.
	Problem Text
}

// taskItem is a task as lists show it.
type taskItem struct {
	OrchestrationID Text      `json:"orchestrationId"`
	TaskID          Text      `json:"taskId"`
	Name            Text      `json:"name"`
	Engine          Text      `json:"engine"`
	CorrelationID   Text      `json:"correlationId"`
	TenantID        Text      `json:"tenantId"`
	Status          string    `json:"status"`
	Roles           []Text    `json:"roles"`
	Assignee        Text      `json:"assignee"`
	AssigneeName    Text      `json:"assigneeName"`
	CreatedAt       time.Time `json:"createdAtUtc"`
	DueAt           time.Time `json:"dueAtUtc"`
	EndedAt         time.Time `json:"endedAtUtc"`
	EndedBy         Text      `json:"endedBy"`
	EndedByName     Text      `json:"endedByName"`

	// Overdue says that it is open, and its time has passed; ForMe that whoever looks has one of its roles, or it has none.
	Overdue bool `json:"-"`
	ForMe   bool `json:"-"`
}

// Open says whether it has not ended.
func (t taskItem) Open() bool { return t.Status == taskCreated || t.Status == taskAssigned }

// Link is the address of its page, and Timeline that of what happened to its work, "" without a correlation id.
func (t taskItem) Link() string {
	return tasksPath + "/" + urlpath.Escape(string(t.OrchestrationID)) + "/" + urlpath.Escape(string(t.TaskID))
}

// Timeline is the address of what happened to the work.
func (t taskItem) Timeline() string { return timelineOf(t.CorrelationID) }

// Holder is who has it, "" for nobody, and Ender who has ended it.
func (t taskItem) Holder() Text { return cmp.Or(t.AssigneeName, t.Assignee) }

// Ender is who has ended it.
func (t taskItem) Ender() Text { return cmp.Or(t.EndedByName, t.EndedBy) }

// look fills what depends on who looks, and when.
func (t *taskItem) look(v *visit) {
	t.Overdue = t.Open() && !t.DueAt.IsZero() && t.DueAt.Before(v.console.config.Now())
	t.ForMe = len(t.Roles) == 0 || slices.ContainsFunc(t.Roles, func(role Text) bool {
		return slices.ContainsFunc(v.me.AppRoles, func(has Text) bool { return strings.EqualFold(string(has), string(role)) })
	})
}

// taskList lists the tasks that somebody has, that somebody could take, or all of them.
func taskList(ctx context.Context, v *visit) (page, error) {
	query := v.r.URL.Query()
	p := tasksPage{Filter: taskFilterOf(query)}
	asked := p.Filter.query(v.me)
	if token := query.Get("continuationToken"); token != "" {
		asked.Set("continuationToken", token)
		p.First = p.Filter.list("")
	}
	var list struct {
		Items []taskItem `json:"items"`
		Token string     `json:"continuationToken"`
	}
	out := page{template: "tasks", title: "Tasks", model: &p, live: Soon}
	err := v.api.get(ctx, "/api/tasks", asked, &list)
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
	} else if err != nil {
		return page{}, err
	}
	out.elsewhere = v.list("task", "list")
	p.Items = list.Items
	for n := range p.Items {
		p.Items[n].look(v)
	}
	if list.Token != "" {
		p.Next = p.Filter.list(list.Token)
	}
	return out, nil
}
