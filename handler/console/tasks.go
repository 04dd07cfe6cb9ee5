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

// The views of tasks in the address; the default is mine.
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

// openStatus is the status in the address that selects open tasks.
const openStatus = "open"

// taskFilters are the names of the filters of tasks, in the addresses of the console and of the API.
var taskFilters = []string{"status", "assignee", "role", "engine", "tenantId", "dueBefore"}

// taskFilter selects tasks, by the parameters of the address.
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

// Statuses returns the options of the form.
func (taskFilter) Statuses() []string {
	return []string{openStatus, taskCreated, taskAssigned, taskCompleted, taskCanceled}
}

// Narrowed reports whether a filter is set.
func (f taskFilter) Narrowed() bool { return len(f.values) > 0 }

// All reports whether the view is that of all tasks, the only one with a filter by assignee.
func (f taskFilter) All() bool { return f.View == viewAll }

// Reset returns the address of the view without the filter.
func (f taskFilter) Reset() string { return address(tasksPath, url.Values{"view": {f.View}}) }

// list returns the address of the filter's list, from a position on.
func (f taskFilter) list(token string) string {
	query := url.Values{"view": {f.View}, "continuationToken": {token}}
	for name, values := range f.values {
		query[name] = values
	}
	return address(tasksPath, query)
}

// query returns the filter in the API's form, for a user.
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

// taskView is a view among the tabs.
type taskView struct {
	Name, Link string
	Current    bool
}

// Views returns the tabs.
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
	// Next is the address of the next page, and First that of the first; "" for none.
	Next, First string
	// Problem is the error of the filter.
	Problem Text
}

// taskItem is a task in lists.
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

	// Overdue means that it is open after its due time; ForMe that the user has one of its roles, or that it has none.
	Overdue bool `json:"-"`
	ForMe   bool `json:"-"`
}

// Open reports whether it has not ended.
func (t taskItem) Open() bool { return t.Status == taskCreated || t.Status == taskAssigned }

// Link returns the address of its page.
func (t taskItem) Link() string {
	return tasksPath + "/" + urlpath.Escape(string(t.OrchestrationID)) + "/" + urlpath.Escape(string(t.TaskID))
}

// Timeline returns the address of its work's timeline, "" without a correlation id.
func (t taskItem) Timeline() string { return timelineOf(t.CorrelationID) }

// Holder returns the assignee, "" for none.
func (t taskItem) Holder() Text { return cmp.Or(t.AssigneeName, t.Assignee) }

// Ender returns the user who ended it.
func (t taskItem) Ender() Text { return cmp.Or(t.EndedByName, t.EndedBy) }

// look sets the values that depend on the user and the time.
func (t *taskItem) look(v *visit) {
	t.Overdue = t.Open() && !t.DueAt.IsZero() && t.DueAt.Before(v.console.config.Now())
	t.ForMe = len(t.Roles) == 0 || slices.ContainsFunc(t.Roles, func(role Text) bool {
		return slices.ContainsFunc(v.me.AppRoles, func(has Text) bool { return strings.EqualFold(string(has), string(role)) })
	})
}

// taskList lists the user's tasks, the tasks that they could claim, or all of them.
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
