package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

const (
	schedulesPath = Root + "/schedules"
	runPath       = schedulesPath + "/:engine/run"
)

// lateAfter is the delay above which an item counts as missed: the app's next check may take that long.
const lateAfter = 2 * time.Minute

// schedulesPage is a page of the list of schedules.
type schedulesPage struct {
	Engine, Schedule, Item string
	// Narrowed reports whether a filter is set.
	Narrowed bool
	Items    []scheduleItem
	// Ran means that one was just run by hand, and RanTimeline is the address of its timeline, "" if unknown.
	Ran         bool
	RanTimeline string
	// Missing is the permission that the user lacks to run one.
	Missing access.Permission
	// Next is the address of the next page, and First that of the first; "" for none.
	Next, First string
	// Problem is the error of the filter.
	Problem Text
}

// scheduleItem is a schedule target: an engine may have several schedules, and a schedule several targets.
type scheduleItem struct {
	Engine        Text      `json:"engine"`
	Schedule      Text      `json:"schedule"`
	Item          Text      `json:"item"`
	Cron          Text      `json:"cron"`
	Source        Text      `json:"source"`
	Spread        Text      `json:"spread"`
	NextAt        time.Time `json:"nextAtUtc"`
	DueAt         time.Time `json:"dueAtUtc"`
	SentAt        time.Time `json:"sentAtUtc"`
	Messages      int       `json:"messages"`
	CorrelationID Text      `json:"correlationId"`
	Result        string    `json:"result"`
	Error         Text      `json:"error"`
	Failures      int       `json:"failures"`
	RetryAt       time.Time `json:"retryAtUtc"`

	// Missed means that it was due, and no message was sent.
	Missed bool `json:"-"`
}

// Name returns its displayed name.
func (i scheduleItem) Name() Text {
	name := i.Engine
	for _, part := range []Text{i.Schedule, i.Item} {
		if part != "" {
			name += ", " + part
		}
	}
	return name
}

// Timeline returns the address of the timeline of the latest message, "" for none.
func (i scheduleItem) Timeline() string { return timelineOf(i.CorrelationID) }

// Run returns the address of the page that runs it.
func (i scheduleItem) Run() string {
	return address(schedulesPath+"/"+urlpath.Escape(string(i.Engine))+"/run", i.query())
}

// query returns the parameters that identify it within its engine.
func (i scheduleItem) query() url.Values {
	return url.Values{"schedule": {string(i.Schedule)}, "item": {string(i.Item)}}
}

// scheduleList lists the next times of schedules, and their latest outcomes.
func scheduleList(ctx context.Context, v *visit) (page, error) {
	query, kept := v.r.URL.Query(), url.Values{}
	for _, name := range []string{"engine", "schedule", "item"} {
		if value := query.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	p := schedulesPage{Engine: kept.Get("engine"), Schedule: kept.Get("schedule"), Item: kept.Get("item"), Narrowed: len(kept) > 0,
		Ran: query.Get("done") == "run", RanTimeline: timelineOf(Text(query.Get("correlationId")))}
	if !v.may(access.SchedulesRun) {
		p.Missing = access.SchedulesRun
	}
	here := address(schedulesPath, kept)
	if token := query.Get("continuationToken"); token != "" {
		kept.Set("continuationToken", token)
		p.First = here
	}
	var list struct {
		Items []scheduleItem `json:"items"`
		Token string         `json:"continuationToken"`
	}
	out := page{template: "schedules", title: "Schedules", model: &p, live: Soon}
	err := v.api.get(ctx, "/api/schedules", kept, &list)
	if problem, ok := badFilter(err); ok {
		p.Problem, out.status, out.code = problem.Message, problem.Status, problem.Code
	} else if err != nil {
		return page{}, err
	}
	out.elsewhere = v.list("schedule", "list")
	p.Items = list.Items
	for n, i := range p.Items {
		p.Items[n].Missed = !i.NextAt.IsZero() && v.console.config.Now().Sub(i.NextAt) >= lateAfter
	}
	if list.Token != "" {
		kept.Set("continuationToken", list.Token)
		p.Next = address(schedulesPath, kept)
	}
	return out, nil
}

// runOf returns the confirmation page for running a schedule target.
func runOf(v *visit, i scheduleItem, key string) *confirmPage {
	p := &confirmPage{Title: "Run a schedule now", Button: "Run now", What: i.Name(), Back: oneParameter(schedulesPath, "engine", string(i.Engine)),
		Consequence: "What the schedule would send is sent now. When it is due next stays as it is, and runs as well.",
		Action:      i.Run(), Key: cmp.Or(key, v.console.config.NewKey())}
	p.need(v, access.SchedulesRun)
	return p
}

// namedItem returns the schedule target in the address of a run.
func (v *visit) namedItem() scheduleItem {
	query := v.r.URL.Query()
	return scheduleItem{Engine: Text(v.r.PathValue("engine")), Schedule: Text(query.Get("schedule")), Item: Text(query.Get("item"))}
}

// askRun shows the confirmation page.
func askRun(ctx context.Context, v *visit) (page, error) {
	asked := v.namedItem()
	var list struct {
		Items []scheduleItem `json:"items"`
	}
	filter := asked.query()
	filter.Set("engine", string(asked.Engine))
	for name, values := range filter {
		if values[0] == "" {
			filter.Del(name)
		}
	}
	if err := v.api.get(ctx, "/api/schedules", filter, &list); err != nil {
		return page{}, err
	}
	for _, i := range list.Items {
		if i.Schedule == asked.Schedule && i.Item == asked.Item {
			return runOf(v, i, "").shown(), nil
		}
	}
	return refusedPage(http.StatusNotFound, "NotFound", "There is no such schedule, or no such item of it."), nil
}

// doRun runs it, once however often the form is sent, and leads to the schedules of the engine.
func doRun(ctx context.Context, v *visit) (page, error) {
	form, header, err := v.posted()
	if err != nil {
		return page{}, err
	}
	i := v.namedItem()
	var sent struct {
		Messages []struct {
			CorrelationID string `json:"correlationId"`
		} `json:"messages"`
	}
	body := map[string]string{}
	for name, values := range i.query() {
		if values[0] != "" {
			body[name] = values[0]
		}
	}
	err = v.post(ctx, "/api/schedules/"+urlpath.Escape(string(i.Engine))+"/run", header, body, &sent)
	to := url.Values{"engine": {string(i.Engine)}, "done": {"run"}}
	if len(sent.Messages) > 0 {
		to.Set("correlationId", sent.Messages[0].CorrelationID)
	}
	return runOf(v, i, form.Get("key")).outcome(err, address(schedulesPath, to))
}
